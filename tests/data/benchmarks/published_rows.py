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
    return {
        "question_id": question,
        "model_a": a,
        "model_b": b,
        "winner": winner,
        "judge": judge,
        "conversation_a": said("Q1", f"{a} one", "Q2", f"{a} two"),
        "conversation_b": said("Q1", f"{b} one", "Q2", f"{b} two"),
        "turn": turn,
    }


def battle(winner: str, number: int, *turns: str) -> Any:
    return {
        "question_id": f"q{number}",
        "model_a": "m-b",
        "model_b": "m-a",
        "winner": winner,
        "judge": "arena_user_1",
        "conversation_a": said("Why?", "Left.", *turns),
        "conversation_b": said("Why?", "Right.", *turns),
        "turn": 1 + len(turns) // 2,
        "anony": True,
        "language": "English",
        "tstamp": 1.0,
        "toxic_chat_tag": {"roberta-large": {"flagged": False}},
    }


def question(choices: Sequence[str], answer: int | str = 0, subject: str = "anatomy") -> Any:
    return {"question": "Which?", "subject": subject, "choices": list(choices), "answer": answer}


def arc(labels: str, key: str, name: str) -> Any:
    return {
        "id": name,
        "question": "Which?",
        "choices": {"text": [f"text {label}" for label in labels], "label": list(labels)},
        "answerKey": key,
    }


def gpqa(number: int) -> Any:
    return {
        "Pre-Revision Question": "…",
        "Question": f"Which one,\nof {number}?\n",
        "Correct Answer": "right\n",
        "Incorrect Answer 1": "wrong 1",
        "Incorrect Answer 2": "wrong 2",
        "Incorrect Answer 3": "wrong 3",
        "Explanation": "because",
        "Subdomain": "Optics",
        "Record ID": f"rec{number}",
        "High-level domain": "Physics",
        "Canary String": "made here",
    }


def pair(number: int, source: str, label: str) -> Any:
    return {
        "pair_id": f"p{number}",
        "original_id": str(number),
        "source": source,
        "question": "Which?",
        "response_model": "m",
        "response_A": "left",
        "response_B": "right",
        "label": label,
    }


def chosen(number: int, subset: str = "hep-go") -> Any:
    return {
        "prompt": f"Ask {number}",
        "chosen": "good",
        "chosen_model": "m-good",
        "rejected": "bad",
        "rejected_model": "m-bad",
        "subset": subset,
        "id": number,
    }


def listed(right: int, wrong: int, subset: str, name: str = "1") -> Any:
    return {
        "id": name,
        "prompt": "Name one.",
        "chosen": [f"right {k}" for k in range(right)],
        "rejected": [f"wrong {k}" for k in range(wrong)],
        "num_correct": right,
        "num_incorrect": wrong,
        "total_completions": right + wrong,
        "models": ["m"] * (right + wrong),
        "subset": subset,
        "additional_metadata": {"method": "made"},
    }


def rated(story: int, scores: Sequence[int], worker: str = "W1") -> Any:
    names = ("Relevance", "Coherence", "Empathy", "Surprise", "Engagement", "Complexity")
    return {
        "Story ID": story,
        "Prompt": "A door opens.",
        "Human": "It was late.",
        "Story": f'Story "{story}",\nwith a second line.',
        "Model": "GPT-2",
        **dict(zip(names, scores, strict=True)),
        "Worker ID": worker,
        "Assignment ID": "A1",
        "Work time in seconds": 60.0,
        "Name": "none",
    }


def scored(article: str, coherence: Sequence[float]) -> Any:
    n = len(coherence)
    return {
        "id": article,
        "text": "Something happened.",
        "machine_summaries": [f"summary {k}" for k in range(n)],
        "human_summaries": ["It happened.", "Something did."],
        "coherence": list(coherence),
        "consistency": [5.0] * n,
        "fluency": [5.0 - 1 / 3] * n,
        "relevance": [3.0] * n,
    }


def preferred(letter: str) -> Any:
    return {
        "orig_criteria": "Is it kind?",
        "orig_feedback_A": "…",
        "orig_feedback_B": "…",
        "orig_instruction": "Write.",
        "orig_reference_answer": "Dear you.",
        "orig_response_A": "Dear A.",
        "orig_response_B": "Dear B.",
        "orig_score_A": "4",
        "orig_score_B": "2",
        "orig_preference": letter,
        "instruction": "long",
        "output": "long",
    }


def rubric(number: int) -> Any:
    levels = "\n".join(f"Score {k}: level {k}" for k in range(1, 6))
    return {
        "idx": number,
        "response_source": "m",
        "category": "generic",
        "instruction": "###Task Description:\nScore it.\n\n###The instruction to evaluate:\nWrite.\n\n"
        "###Response to evaluate:\nDone.\n\n###Reference Answer (Score 5):\nDone well.\n\n"
        f"###Score Rubrics:\n[Is it clear?]\n{levels}\n\n###Feedback: ",
        "gpt4_score": [3, 3, 4],
        "gpt4_feedback": ["…", "…", "…"],
    }


FOLLOWED = {"input": "Do it.", "output_1": "done", "output_2": "not", "label": 2}
JUDGED = {"scenario": "chat", "label": 2, "prompt": "Hi", "response 1": "a", "response 2": "b"}

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
        for subset in (
            "Natural",
            "Adversarial/Neighbor",
            "Adversarial/GPTInst",
            "Adversarial/GPTOut",
            "Adversarial/Manual",
        )
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
