"""Rows of our own in the exact layout of every benchmark, and the folders that hold them."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Rows = list[dict[str, Any]]


def said(*texts: str) -> Rows:
    """A conversation, the user first."""
    roles = ("user", "assistant")
    return [{"content": text, "role": roles[k % 2]} for k, text in enumerate(texts)]


def vote(
    a: str, b: str, winner: str, *, question: int = 81, turn: int = 1, judge: str = "j"
) -> Any:
    talks = {
        f"conversation_{place}": said("Q1", f"{name} one", "Q2", f"{name} two")
        for place, name in (("a", a), ("b", b))
    }
    row = {"question_id": question, "model_a": a, "model_b": b, "winner": winner}
    return {**row, "judge": judge, **talks, "turn": turn}


def battle(winner: str, number: int, *turns: str) -> Any:
    row = {"question_id": f"q{number}", "model_a": "m-b", "model_b": "m-a", "winner": winner}
    talks = {"conversation_a": said("Why?", "Left.", *turns)}
    talks |= {"conversation_b": said("Why?", "Right.", *turns)}
    more = {"judge": "arena_user_1", "anony": True, "language": "English", "tstamp": 1.0}
    toxic = {"roberta-large": {"flagged": False}}
    return {**row, **talks, "turn": 1 + len(turns) // 2, **more, "toxic_chat_tag": toxic}


def question(choices: Sequence[str], answer: int | str = 0, subject: str = "anatomy") -> Any:
    return {"question": "Which?", "subject": subject, "choices": list(choices), "answer": answer}


def arc(labels: str, key: str, name: str) -> Any:
    choices = {"text": [f"text {label}" for label in labels], "label": list(labels)}
    return {"id": name, "question": "Which?", "choices": choices, "answerKey": key}


def gpqa(number: int) -> Any:
    wrong = {f"Incorrect Answer {k}": f"wrong {k}" for k in (1, 2, 3)}
    asked = {"Pre-Revision Question": "…", "Question": f"Which one,\nof {number}?\n"}
    about = {"Subdomain": "Optics", "Record ID": f"rec{number}", "High-level domain": "Physics"}
    more = {"Explanation": "because", "Canary String": "made here"}
    return {**asked, "Correct Answer": "right\n", **wrong, **about, **more}


def pair(number: int, source: str, label: str) -> Any:
    row = {"pair_id": f"p{number}", "original_id": str(number), "source": source, "label": label}
    texts = {"question": "Which?", "response_A": "left", "response_B": "right"}
    return {**row, **texts, "response_model": "m"}


def chosen(number: int, subset: str = "hep-go") -> Any:
    texts = {"prompt": f"Ask {number}", "chosen": "good", "rejected": "bad"}
    models = {"chosen_model": "m-good", "rejected_model": "m-bad"}
    return {**texts, **models, "subset": subset, "id": number}


def listed(right: int, wrong: int, subset: str, name: str = "1") -> Any:
    answers = {
        "chosen": [f"right {k}" for k in range(right)],
        "rejected": [f"wrong {k}" for k in range(wrong)],
    }
    numbers = {"num_correct": right, "num_incorrect": wrong, "total_completions": right + wrong}
    more = {"models": ["m"] * (right + wrong), "additional_metadata": {"method": "made"}}
    return {"id": name, "prompt": "Name one.", **answers, **numbers, "subset": subset, **more}


def rated(story: int, scores: Sequence[int], worker: str = "W1") -> Any:
    names = ("Relevance", "Coherence", "Empathy", "Surprise", "Engagement", "Complexity")
    texts = {"Prompt": "A door opens.", "Human": "It was late.", "Model": "GPT-2", "Name": "none"}
    own = {"Story ID": story, "Story": f'Story "{story}",\nwith a second line.'}
    work = {"Worker ID": worker, "Assignment ID": "A1", "Work time in seconds": 60.0}
    return {**own, **texts, **dict(zip(names, scores, strict=True)), **work}


def scored(article: str, coherence: Sequence[float]) -> Any:
    n = len(coherence)
    texts = {"text": "Something happened.", "human_summaries": ["It happened.", "Something did."]}
    scores = {"consistency": [5.0] * n, "fluency": [5.0 - 1 / 3] * n, "relevance": [3.0] * n}
    summaries = [f"summary {k}" for k in range(n)]
    row = {"id": article, "machine_summaries": summaries, "coherence": list(coherence)}
    return {**row, **texts, **scores}


def preferred(letter: str) -> Any:
    published = {
        "criteria": "Is it kind?",
        "instruction": "Write.",
        "reference_answer": "Dear you.",
        "response_A": "Dear A.",
        "response_B": "Dear B.",
        "score_A": "4",
        "score_B": "2",
        "feedback_A": "…",
        "feedback_B": "…",
        "preference": letter,
    }
    own = {f"orig_{name}": value for name, value in published.items()}
    return {**own, "instruction": "long", "output": "long"}


def rubric(number: int) -> Any:
    levels = "\n".join(f"Score {k}: level {k}" for k in range(1, 6))
    instruction = (
        "###Task Description:\nScore it.\n\n###The instruction to evaluate:\nWrite.\n\n"
        "###Response to evaluate:\nDone.\n\n###Reference Answer (Score 5):\nDone well.\n\n"
        f"###Score Rubrics:\n[Is it clear?]\n{levels}\n\n###Feedback: "
    )
    row = {"idx": number, "response_source": "m", "category": "generic"}
    scores = {"gpt4_score": [3, 3, 4], "gpt4_feedback": ["…", "…", "…"]}
    return {**row, "instruction": instruction, **scores}


FOLLOWED = {"input": "Do it.", "output_1": "done", "output_2": "not", "label": 2}
JUDGED = {"scenario": "chat", "label": 2, "prompt": "Hi", "response 1": "a", "response 2": "b"}
SUBSETS = (
    "Natural",
    *(f"Adversarial/{name}" for name in ("Neighbor", "GPTInst", "GPTOut", "Manual")),
)

ROWS: dict[str, dict[str, Rows]] = {
    "arc-challenge": {"ARC-Challenge/test-00000-of-00001.parquet": [arc("ABCD", "B", "a1")]},
    "auto-j": {"data/test/testdata_pairwise.jsonl": [JUDGED]},
    "chatbot-arena": {"data/train-00000-of-00001-x.parquet": [battle("model_b", 1)]},
    "gpqa": {"gpqa_main.csv": [gpqa(1), gpqa(2)]},
    "hanna": {
        "hanna_stories_annotations.csv": [rated(7, [1, 2, 3, 4, 5, k]) for k in (1, 1, 3)],
    },
    "judgebench": {
        "data/gpt-00000-of-00001.jsonl": [pair(1, "mmlu-pro-law", "A>B")],
        "data/claude-00000-of-00001.jsonl": [pair(2, "livecodebench", "B>A")],
    },
    "llmbar": {
        f"Dataset/LLMBar/{subset}/dataset.json": [{**FOLLOWED, "input": subset}]
        for subset in SUBSETS
    },
    "mmlu": {"all/test-00000-of-00001.parquet": [question(["w", "x", "y", "z"], 3)]},
    "mt-bench": {"data/human-00000-of-00001-x.parquet": [vote("b", "a", "model_a")]},
    "preference-bench": {"data/train-00000-of-00001-x.parquet": [preferred("B")]},
    "reward-bench": {"data/filtered-00000-of-00001.parquet": [chosen(5)]},
    "reward-bench-2": {"data/test-00000-of-00001.parquet": [listed(1, 3, "Factuality")]},
    "summeval": {"data/test-00000-of-00001-x.parquet": [scored("d1", [1.0, 7 / 3])]},
    "tiny-mmlu": {"all/test-00000-of-00001.parquet": [question(["w", "x", "y", "z"], 1)]},
    "vicuna-bench": {"eval/benchmark/data/vicuna_eval.json": [rubric(1)]},
}
"""One small copy of every benchmark: files by the published path."""


def write(folder: Path, files: Mapping[str, Rows]) -> Path:
    """A folder with these files, each in the format that its name says."""
    for name, rows in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            pq.write_table(pa.Table.from_pylist(rows), path)
        elif path.suffix == ".csv":
            with path.open("w", newline="", encoding="utf-8") as file:
                table = csv.DictWriter(file, list(rows[0]))
                table.writeheader()
                table.writerows(rows)
        elif path.suffix == ".json":
            path.write_text(json.dumps(rows, indent=1), encoding="utf-8")
        else:
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return folder
