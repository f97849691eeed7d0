"""A file of every format that is imported, in the layout in which its project writes it; the content is made up."""

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from unswayed.data.importers import Imported, import_files
from unswayed.model.decisions import Decision

TALK = [{"role": "user", "content": "Name a metal."}, {"role": "assistant", "content": "Tin."}]


def choices(decisions: Sequence[Decision]) -> list[tuple[tuple[int, ...], object]]:
    """The order and the choice of each decision."""
    return [(decision.order, decision.choice) for decision in decisions]


def lines(path: Path, *records: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def array(path: Path, *records: object) -> Path:
    path.write_text(json.dumps(records, indent=4))
    return path


def whole(path: Path, record: object, indent: int | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=indent))
    return path


def table(path: Path, *rows: dict[str, object]) -> Path:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        file.write(text.getvalue())
    return path


def mt_row(**fields: object) -> dict[str, object]:
    row = {"question_id": 81, "model_a": "alpaca", "model_b": "vicuna", "winner": "model_b"}
    other = [TALK[0], {"role": "assistant", "content": "Iron."}]
    talks = {"conversation_a": TALK, "conversation_b": other, "turn": 1}
    return {**row, **talks, "judge": ["gpt-4", "pair-v2"], **fields}


def panda_pair(idx: int = 0, **fields: object) -> dict[str, object]:
    row = {"idx": idx, "motivation_app": "Grammarly", "cmp_key": "bloom-7b_llama-7b"}
    texts = {"instruction": "Name a metal.", "input": "One word."}
    texts |= {"response1": "Tin", "response2": "Oak"}
    return {**row, **texts, "annotator1": 1, "annotator2": 1, "annotator3": 0, **fields}


def panda_result(idx: int = 0, result: object = "1", judge: str = "gpt") -> dict[str, object]:
    said = {f"{judge}_result": result, f"{judge}_reason": "why", f"{judge}_reference": "r"}
    return {"idx": idx, **said}


def pride_line(rows: list[Any], n: int = 4, idx: int = 0, **fields: object) -> dict[str, object]:
    options = ["tin", "oak", "elm", "ash", "yew"][:n]
    data = {"idx": idx, "prompt": "...", "options": options, "probs": rows, "ideal": "A"}
    return {"type": "result", "data": {**data, **fields}}


def lm_sample(doc_id: int = 0, **fields: object) -> dict[str, object]:
    """Four labels scored over one context; the first is the most likely."""
    scores = [[score, "False"] for score in ("-0.1", "-3.0", "-4.0", "-5.0")]
    doc = {"question": "Which is a metal?", "choices": ["tin", "oak", "elm", "ash"], "answer": 0}
    arguments = {
        f"gen_args_{k}": {"arg_0": "Question\nAnswer:", "arg_1": f" {label}"}
        for k, label in enumerate("ABCD")
    }
    row = {"doc_id": doc_id, "doc": doc, "target": "0", "arguments": arguments}
    more = {"filter": "none", "metrics": ["acc"], "doc_hash": "d", "prompt_hash": "p", "acc": 1.0}
    return {**row, **more, "resps": [[s] for s in scores], "filtered_resps": scores, **fields}


def inspect_sample(name: object = 1, **fields: object) -> dict[str, Any]:
    asked = {"input": "Which is a metal?", "choices": ["tin", "oak", "elm"], "target": "A"}
    score = {"value": "C", "answer": "A", "explanation": "ANSWER: A"}
    more = {"messages": [], "output": {"model": "mockllm/model"}, "metadata": {}, "store": {}}
    return {"id": name, "epoch": 1, **asked, "scores": {"choice": score}, **more, **fields}


EVAL = {"task": "metals", "model": "mockllm/model", "dataset": {"name": "metals"}}


def inspect_json(path: Path, *samples: dict[str, Any], indent: int | None = 2) -> Path:
    log = {"version": 2, "status": "success", "eval": EVAL, "plan": {"name": "plan"}}
    more = {"results": {"total_samples": len(samples)}, "stats": {}, "reductions": []}
    return whole(path, {**log, "samples": list(samples), **more}, indent)


def inspect_zip(path: Path, *samples: dict[str, Any], **members: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": EVAL}))
        for sample in samples:
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            archive.writestr(name, json.dumps(sample))
        archive.writestr("summaries.json", "[]")
        header = json.dumps({"version": 2, "eval": EVAL, "plan": {}})
        for name, text in ({"header.json": header} | members).items():
            archive.writestr(name, text)
    return path


def grpo_result(answer: object, permutation: object = 0, **fields: object) -> dict[str, Any]:
    extra = {"question_id": f"q7_perm_{permutation}", "permutation": permutation}
    row = {"row_index": 0, "data_source": "mtbench", "ability": "text", "extra_info": extra}
    asked = {"original_prompt": [], "user_question": "no candidates", "system_prompt": ""}
    gold = {"golden_answer": "A" if permutation in (0, "0") else "B", "is_correct": True}
    said = {"model_response": "<think></think>", "extracted_answer": answer}
    return {**row, **asked, **gold, **said, "answer_probability": None, **fields}


def grpo_file(path: Path, *results: object, indent: int | None = 2) -> Path:
    metadata = {"dataset": "x.parquet", "mode": "think", "num_options": 2, "total_samples": 1}
    return whole(path, {"metadata": metadata, "results": list(results), "summary": {}}, indent)


def hanna_row(story: int = 96, **fields: object) -> dict[str, object]:
    row: dict[str, object] = {"story_id": story, "system": "GPT", "prompt_idx": 0}
    for short in ("RE", "CH", "EM", "SU", "EG", "CX"):
        row |= {f"human{k}_{short}": k + 1 for k in (1, 2, 3)}
        row |= {f"ChatGPT_p{k}_{short}": 2.0 + k / 3 for k in (1, 2)}
    return {**row, **fields}


def hanna_wide(system: str, n: int = 2, **fields: object) -> dict[str, object]:
    row: dict[str, object] = {"Model": system, "Relevance": "[1.0]", "Human Avg 1 RE": "[1.0]"}
    for short in ("RE", "CH", "EM", "SU", "EG", "CX"):
        row |= {f"Human {k} {short}": str([k + 1] * n) for k in (1, 2, 3)}
        row |= {f"ChatGPT {short} {k}": str([2.0 + k / 3] * n) for k in (1, 2)}
        row[f"ChatGPT AVG {short}"] = "[9.0]"
    return {**row, **fields}


def geval_row(*replies: object, **fields: object) -> dict[str, object]:
    row = {"doc_id": "dm-test-1", "system_id": "M11", "source": "A long article."}
    texts = {"reference": "Short.", "system_output": "A summary."}
    scores = {"coherence": 3.3, "consistency": 5.0, "fluency": 4.67, "relevance": 2.0}
    prompt = "Evaluation Criteria:\n\nCoherence (1-5) - ...\n\n- Coherence:"
    said = {"prompt": prompt, "all_responses": list(replies) or ["4", " 3"]}
    return {**row, **texts, "scores": {**scores, "overall": 3.7}, **said, **fields}


def reward_columns(**columns: list[Any]) -> dict[str, object]:
    n = len(columns.get("results", [1]))
    one = {"prompt": "Name a metal.", "text_chosen": "Tin", "text_rejected": "Oak", "results": 1}
    one |= {"subset": "hep-python", "scores_chosen": 2.5, "scores_rejected": 1.5}
    rows = {name: [value] * n for name, value in one.items()}
    judge = {"model": "org/model", "model_type": "Seq. Classifier", "chat_template": None}
    return {**rows, "id": list(range(n)), **judge, **columns}


def judgebench(first: object, second: object = None, **fields: object) -> dict[str, Any]:
    """A pair with two decisions, in displayed letters; a judgment that is None failed."""
    given = [{"judgment": {"judge_model": "m", "response": "text"}, "decision": first}]
    given += [{"judgment": {"judge_model": "m", "response": ""}, "decision": second}]
    texts = {"question": "q", "response_A": "one", "response_B": "two"}
    row = {"pair_id": "p1", "source": "mmlu-pro-law", **texts, "judge_name": "arena_hard"}
    return {**row, "label": "B>A", "judgments": given, **fields}


def verdict(own: object, swapped: object, **more: object) -> dict[str, object]:
    """What an evaluator of LLMBar said of both orders, by candidate."""
    said = ["Output (a)", "stop"]
    return {
        "swap = False": {"completion": said, "winner": own},
        "swap = True": {"completion": said, "winner": swapped, "prompt": "..."},
        **more,
    }


def ratings(first: object, second: object, own: str, swapped: str) -> dict[str, object]:
    """The same of one that rates each output by itself."""
    scores = {"score_1": [first, "stop"], "score_2": [second, "stop"]}
    return {**scores, "swap = False": {"winner": own}, "swap = True": {"winner": swapped}}


def llmbar(*results: object, **fields: object) -> dict[str, object]:
    row = {"input": "Name a metal.", "output_1": "Tin", "output_2": "Oak", "label": 1}
    return {**row, "results": list(results), **fields}


def alpaca(preference: float | None, instruction: str = "i", **fields: object) -> dict[str, object]:
    row = {"instruction": instruction, "output_1": "one", "output_2": "two"}
    by = {"generator_1": "reference", "generator_2": "model", "annotator": "claude"}
    more = {"dataset": "helpful_base", "price_per_example": 0.005, "time_per_example": 0.19}
    return {**row, **by, **more, "preference": preference, **fields}


def fastchat(g1: str, g2: str, **fields: object) -> dict[str, Any]:
    row = {"question_id": 81, "model_1": "alpaca", "model_2": "vicuna", "turn": 1}
    games = {"g1_winner": g1, "g1_judgment": "so [[A]]", "g2_winner": g2, "g2_judgment": "[[B]]"}
    more = {"judge": ["gpt-4", "pair-v2"], "g1_user_prompt": "[User Question]", "tstamp": 1686.25}
    return {**row, **games, **more, **fields}


def mt_call(first: str, second: str, raw: str) -> dict[str, object]:
    """A call of the Position-Bias-Analyzer in the layout of its pickles."""
    shown = {"model_shown_as_A": first, "model_shown_as_B": second}
    return {"question_id": 81, **shown, "judge": "j", "raw": raw}


OWN = {"item_id": "q", "order": [0, 1], "labels": ["A", "B"], "label_set": ["A", "B"], "choice": 0}
PAIR = {"prompt": "p", "response 1": "a", "response 2": "b", "label": 0}
ARENA = {
    "data_source": "chatbot_arena",
    "prompt": [{"content": "###Query: \nq\n\n###A Answer: \na\n\n###B Answer:\nb", "role": "user"}],
    "reward_model": {"ground_truth": "A", "style": "rule"},
    "extra_info": {"original_question_id": "1", "permutation": 0},
}
RUBRIC = (
    "###The instruction to evaluate:\nq\n\n###Response to evaluate:\nr\n\n"
    "###Score Rubrics:\n[Good?]\nScore 1: bad\nScore 2: good\n\n###Feedback:"
)
SECOND_VERSION = {
    "results": [1],
    "subset": ["Math"],
    "id": ["1"],
    "prompt": ["q"],
    "num_correct": [1],
    "scores": [[2.0, 1.0, 0.5, 0.1]],
    "model": "m",
}
SAMPLES = "samples_mmlu_2026-01-02T03-04-05.678.jsonl"

Layout = tuple[str, Callable[[Path], Path]]


def layout(kind: str, form: Callable[..., Path], name: str, *records: object, **how: Any) -> Layout:
    return kind, lambda folder: form(folder / name, *records, **how)


ONE_LINE = {"indent": None}
FORMATS: dict[str, Layout] = {
    "alpaca-eval": layout("alpaca-eval", array, "annotations.json", alpaca(1.0)),
    "autoj": layout("autoj", lines, "pairs.jsonl", {**PAIR, "autoj_output_order1": 0}),
    "fastchat": layout("fastchat", lines, "gpt-4_pair.jsonl", fastchat("model_1", "tie")),
    "fastchat-table": layout("fastchat-table", lines, "gpt4_pair.jsonl", mt_row()),
    "hanna": layout("hanna", table, "long.csv.gz", hanna_row()),
    "hanna, its own form": layout("hanna", table, "wide.csv.gz", hanna_wide("Human")),
    "inspect": layout("inspect", inspect_zip, "log.eval", inspect_sample()),
    "inspect, JSON": layout("inspect", inspect_json, "log.json", inspect_sample()),
    "inspect, one line": layout("inspect", inspect_json, "log.json", inspect_sample(), **ONE_LINE),
    "judgebench": layout("judgebench", lines, "outputs.jsonl", judgebench("A>B", "A>B")),
    "jsonl": layout("jsonl", lines, "decisions.jsonl", OWN),
    "llmbar": layout("llmbar", array, "result.json", llmbar(verdict("1", "1"))),
    "lm-eval": layout("lm-eval", lines, f"m/{SAMPLES}", lm_sample()),
    "mt-bench": layout("mt-bench", lines, "p.jsonl", mt_call("x", "y", "[[A]]")),
    "pa-grpo": layout("pa-grpo", lines, "arena.jsonl", ARENA),
    "pa-grpo-results": layout("pa-grpo-results", grpo_file, "r_results.json", grpo_result("A")),
    "pa-grpo-results, one line": layout(
        "pa-grpo-results", grpo_file, "r_results.json", grpo_result("A"), **ONE_LINE
    ),
    "pa-grpo-results, a list": layout("pa-grpo-results", array, "r.json", grpo_result("A")),
    "pandalm, pairs": layout("pandalm", array, "testset-v1.json", panda_pair()),
    "pandalm, results": layout("pandalm", array, "gpt-testset-v1.json", panda_result()),
    "pride": layout("pride", lines, "law.jsonl", pride_line([[0.7, 0.1, 0.1, 0.1]] * 24)),
    "pride, a chat model": layout(
        "pride", lines, "law.jsonl", pride_line([], probs=None, observed=[[70, 10, 10, 10]] * 4)
    ),
    "prometheus": layout(
        "prometheus",
        array,
        "mt_bench_eval.json",
        {"idx": 1, "instruction": RUBRIC, "gpt4_score": [1, 2]},
    ),
    "reward-bench": layout("reward-bench", whole, "model.json", reward_columns()),
    "reward-bench, over lines": layout(
        "reward-bench", whole, "model.json", reward_columns(), indent=1
    ),
    "reward-bench, version 2": layout("reward-bench", whole, "model.json", SECOND_VERSION),
    "summeval": layout("summeval", array, "gpt4_coh_detailed.json", geval_row()),
}
"""By name of the layout: the importer it is for, and what writes one file of it."""


def read(kind: str, folder: Path, *records: object, **options: Any) -> Imported:
    """What is imported of a file of JSON Lines with these records."""
    return import_files(kind, [lines(folder / "x.jsonl", *records)], **options)


def counted(made: Imported, start: str = "left out: ") -> dict[str, int]:
    """The counts under names that begin so, without the beginning."""
    return {k.removeprefix(start): n for k, n in made.counts.items() if k.startswith(start)}
