"""A file of every format that is imported, in the layout in which its project writes it; the content is made up."""

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

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
    return {
        "question_id": 81,
        "model_a": "alpaca",
        "model_b": "vicuna",
        "winner": "model_b",
        "judge": ["gpt-4", "pair-v2"],
        "conversation_a": TALK,
        "conversation_b": [TALK[0], {"role": "assistant", "content": "Iron."}],
        "turn": 1,
        **fields,
    }


def panda_pair(idx: int = 0, **fields: object) -> dict[str, object]:
    return {
        "idx": idx,
        "motivation_app": "Grammarly",
        "cmp_key": "bloom-7b_llama-7b",
        "instruction": "Name a metal.",
        "input": "One word.",
        "response1": "Tin",
        "response2": "Oak",
        "annotator1": 1,
        "annotator2": 1,
        "annotator3": 0,
        **fields,
    }


def panda_result(idx: int = 0, result: object = "1", judge: str = "gpt") -> dict[str, object]:
    return {
        "idx": idx,
        f"{judge}_result": result,
        f"{judge}_reason": "why",
        f"{judge}_reference": "r",
    }


def pride_line(rows: list[Any], n: int = 4, idx: int = 0, **fields: object) -> dict[str, object]:
    data = {
        "idx": idx,
        "prompt": "Question: ...",
        "options": ["tin", "oak", "elm", "ash", "yew"][:n],
        "probs": rows,
        "ideal": "A",
        **fields,
    }
    return {"type": "result", "data": data}


def lm_sample(doc_id: int = 0, **fields: object) -> dict[str, object]:
    """Four labels scored over one context; the first is the most likely."""
    scores = ["-0.1", "-3.0", "-4.0", "-5.0"]
    return {
        "doc_id": doc_id,
        "doc": {
            "question": "Which is a metal?",
            "choices": ["tin", "oak", "elm", "ash"],
            "answer": 0,
        },
        "target": "0",
        "arguments": {
            f"gen_args_{k}": {"arg_0": "Question\nAnswer:", "arg_1": f" {label}"}
            for k, label in enumerate("ABCD")
        },
        "resps": [[[score, "False"]] for score in scores],
        "filtered_resps": [[score, "False"] for score in scores],
        "filter": "none",
        "metrics": ["acc"],
        "doc_hash": "d",
        "prompt_hash": "p",
        "target_hash": "t",
        "acc": 1.0,
        **fields,
    }


def inspect_sample(name: object = 1, **fields: object) -> dict[str, Any]:
    return {
        "id": name,
        "epoch": 1,
        "input": "Which is a metal?",
        "choices": ["tin", "oak", "elm"],
        "target": "A",
        "messages": [],
        "output": {"model": "mockllm/model"},
        "scores": {"choice": {"value": "C", "answer": "A", "explanation": "ANSWER: A"}},
        "metadata": {},
        "store": {},
        **fields,
    }


EVAL = {"task": "metals", "model": "mockllm/model", "dataset": {"name": "metals"}}


def inspect_json(path: Path, *samples: dict[str, Any], indent: int | None = 2) -> Path:
    log = {
        "version": 2,
        "status": "success",
        "eval": EVAL,
        "plan": {"name": "plan"},
        "results": {"total_samples": len(samples)},
        "stats": {},
        "samples": list(samples),
        "reductions": [],
    }
    return whole(path, log, indent)


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
    return {
        "row_index": 0,
        "data_source": "mtbench",
        "ability": "text",
        "extra_info": {"question_id": f"q7_perm_{permutation}", "permutation": permutation},
        "original_prompt": [],
        "user_question": "no candidates",
        "system_prompt": "",
        "golden_answer": "A" if permutation in (0, "0") else "B",
        "model_response": "<think></think>",
        "extracted_answer": answer,
        "is_correct": True,
        "answer_probability": None,
        **fields,
    }


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
    return {
        "doc_id": "dm-test-1",
        "system_id": "M11",
        "source": "A long article.",
        "reference": "Short.",
        "system_output": "A summary.",
        "scores": {
            "coherence": 3.3,
            "consistency": 5.0,
            "fluency": 4.67,
            "relevance": 2.0,
            "overall": 3.7,
        },
        "prompt": "Evaluation Criteria:\n\nCoherence (1-5) - ...\n\n- Coherence:",
        "all_responses": list(replies) or ["4", " 3"],
        **fields,
    }


def reward_columns(**columns: list[Any]) -> dict[str, object]:
    n = len(columns.get("results", [1]))
    return {
        "prompt": ["Name a metal."] * n,
        "text_chosen": ["Tin"] * n,
        "text_rejected": ["Oak"] * n,
        "results": [1] * n,
        "subset": ["hep-python"] * n,
        "id": list(range(n)),
        "scores_chosen": [2.5] * n,
        "scores_rejected": [1.5] * n,
        "model": "org/model",
        "model_type": "Seq. Classifier",
        "chat_template": None,
        **columns,
    }


OWN = {"item_id": "q", "order": [0, 1], "labels": ["A", "B"], "label_set": ["A", "B"], "choice": 0}
PAIR = {"prompt": "p", "response 1": "a", "response 2": "b", "label": 0}
JUDGMENT = {"judgment": {"judge_model": "m", "response": "t"}, "decision": "A>B"}
VERDICT = {"swap = False": {"winner": "1"}, "swap = True": {"winner": "1"}}
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

FORMATS: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "alpaca-eval": (
        "alpaca-eval",
        lambda at: array(
            at / "annotations.json",
            {
                "instruction": "i",
                "output_1": "x",
                "output_2": "y",
                "preference": 1.0,
                "annotator": "a",
            },
        ),
    ),
    "autoj": ("autoj", lambda at: lines(at / "pairs.jsonl", {**PAIR, "autoj_output_order1": 0})),
    "fastchat": (
        "fastchat",
        lambda at: lines(
            at / "gpt-4_pair.jsonl",
            {
                "question_id": 1,
                "model_1": "a",
                "model_2": "b",
                "g1_winner": "model_1",
                "g2_winner": "tie",
                "judge": ["gpt-4", "pair-v2"],
                "turn": 1,
            },
        ),
    ),
    "fastchat-table": ("fastchat-table", lambda at: lines(at / "gpt4_pair.jsonl", mt_row())),
    "hanna": ("hanna", lambda at: table(at / "long.csv.gz", hanna_row())),
    "hanna, its own form": ("hanna", lambda at: table(at / "wide.csv.gz", hanna_wide("Human"))),
    "inspect": ("inspect", lambda at: inspect_zip(at / "log.eval", inspect_sample())),
    "inspect, JSON": ("inspect", lambda at: inspect_json(at / "log.json", inspect_sample())),
    "inspect, JSON on one line": (
        "inspect",
        lambda at: inspect_json(at / "log.json", inspect_sample(), indent=None),
    ),
    "judgebench": (
        "judgebench",
        lambda at: lines(
            at / "outputs.jsonl",
            {
                "pair_id": "p",
                "question": "q",
                "response_A": "a",
                "response_B": "b",
                "label": "A>B",
                "judgments": [JUDGMENT, JUDGMENT],
            },
        ),
    ),
    "jsonl": ("jsonl", lambda at: lines(at / "decisions.jsonl", OWN)),
    "llmbar": (
        "llmbar",
        lambda at: array(
            at / "result.json",
            {"input": "i", "output_1": "x", "output_2": "y", "label": 1, "results": [VERDICT]},
        ),
    ),
    "lm-eval": (
        "lm-eval",
        lambda at: lines(at / "m" / "samples_mmlu_2026-01-02T03-04-05.678.jsonl", lm_sample()),
    ),
    "mt-bench": (
        "mt-bench",
        lambda at: lines(
            at / "p.jsonl",
            {
                "question_id": 81,
                "model_shown_as_A": "x",
                "model_shown_as_B": "y",
                "judge": "j",
                "raw": "[[A]]",
            },
        ),
    ),
    "pa-grpo": ("pa-grpo", lambda at: lines(at / "arena.jsonl", ARENA)),
    "pa-grpo-results": (
        "pa-grpo-results",
        lambda at: grpo_file(at / "r_results.json", grpo_result("A")),
    ),
    "pa-grpo-results, on one line": (
        "pa-grpo-results",
        lambda at: grpo_file(at / "r_results.json", grpo_result("A"), indent=None),
    ),
    "pa-grpo-results, a list": (
        "pa-grpo-results",
        lambda at: array(at / "r.json", grpo_result("A")),
    ),
    "pandalm, pairs": ("pandalm", lambda at: array(at / "testset-v1.json", panda_pair())),
    "pandalm, results": ("pandalm", lambda at: array(at / "gpt-testset-v1.json", panda_result())),
    "pride": (
        "pride",
        lambda at: lines(at / "law.jsonl", pride_line([[0.7, 0.1, 0.1, 0.1]] * 24)),
    ),
    "pride, a chat model": (
        "pride",
        lambda at: lines(
            at / "law.jsonl", pride_line([], probs=None, observed=[[70, 10, 10, 10]] * 4)
        ),
    ),
    "prometheus": (
        "prometheus",
        lambda at: array(
            at / "mt_bench_eval.json", {"idx": 1, "instruction": RUBRIC, "gpt4_score": [1, 2]}
        ),
    ),
    "reward-bench": ("reward-bench", lambda at: whole(at / "model.json", reward_columns())),
    "reward-bench, spread over lines": (
        "reward-bench",
        lambda at: whole(at / "model.json", reward_columns(), indent=1),
    ),
    "reward-bench, version 2": (
        "reward-bench",
        lambda at: whole(
            at / "model.json",
            {
                "results": [1],
                "subset": ["Math"],
                "id": ["1"],
                "prompt": ["q"],
                "num_correct": [1],
                "scores": [[2.0, 1.0, 0.5, 0.1]],
                "model": "m",
            },
        ),
    ),
    "summeval": ("summeval", lambda at: array(at / "gpt4_coh_detailed.json", geval_row())),
}
"""By name of the layout: the importer it is for, and what writes one file of it."""
