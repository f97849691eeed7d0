"""The model card of what was trained, and the name under which an adapter finds its base.

The card holds nothing of the machine it was made on: a model of the hub is named by id and revision,
a local one by its fingerprint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from unswayed.backends.model_folders import ADAPTER_CONFIG
from unswayed.training.held_out import Figure, figures_of
from unswayed.training.provenance import Record

OF_THE_MACHINE: Final = frozenset({"name", "model", "prompt.template", "rollout.server_url"})
"""Recipe fields that may name a path or a host; the base stands in the card by itself."""


class Base(NamedTuple):
    """The model that was trained, as others can find it."""

    hub_id: str | None  # of the hub; None for a local folder
    revision: str  # its commit, or the fingerprint of the folder's files

    @property
    def name(self) -> str:
        """Heading of a card."""
        return "Local model" if self.hub_id is None else self.hub_id.rpartition("/")[2]

    def __str__(self) -> str:
        """Return the text for a card."""
        if self.hub_id is None:
            return f"a local model with the fingerprint `{self.revision}`"
        return f"`{self.hub_id}` at revision `{self.revision}`"


class Origin(NamedTuple):
    """Data of a training run and the settings its recipe left open."""

    needs_gold: bool  # whether gold was trained on
    golden: int  # items by whose gold a temperature can be chosen; 0 if they are too few
    temperature: float | None  # as the recipe gives it; None where it does not
    labels_move: bool  # whether labels changed their positions
    # what was, such as a `temperature`, by name; empty where nothing was
    settled: Mapping[str, float]


def base_of(record: Record) -> Base:
    """Return the base of a run: a record names `<hub id>@<commit>` or `<path>@sha256:<digits>`."""
    name, _, revision = str(record["model"]).rpartition("@")
    return Base(None if revision.startswith("sha256:") else name, revision)


def model_card(
    record: Record,
    *,
    method: str,
    origin: Origin,
    steps: int,
    before: Mapping[str, float],
    after: Mapping[str, float],
) -> str:
    """Return the README of what was trained: what it is, how it was made, what it is not.

    Its front matter is what the Hugging Face hub accepts: `base_model` is an id or absent.
    """
    data, base = record["data"], base_of(record)
    lora = "lora.rank" in record["recipe"]
    kind = "LoRA adapter" if lora else "model"
    lines = [
        "---",
        *_front_matter(base, lora=lora),
        "---",
        "",
        f"# {base.name} ({record['kind']})",
        "",
        f"A {kind} trained from {base} so that its answer depends on the candidates and not on their order.",
        "",
        f"- Method: {method}.",
        *_targets(origin),
        f"- Presentations: {_shown(origin)}.",
        f"- Name for unswayed: `hf/{'BASE+lora=' if lora else ''}FOLDER`, where FOLDER holds this "
        f"file{' and BASE the model above' if lora else ''}.",
        f"- Steps: {steps}.",
        f"- Data: {data['kept']} items x {record['presentations']} presentations "
        f"({data['given']} given, {data['held_out']} held out, {data['overlong']} too long, "
        f"{data['without_gold']} without gold, {data['not_permutable']} not permutable).",
        f"- Recipe: {record['recipe_name']}, fingerprint `{record['recipe_fingerprint']}`.",
        f"- Data fingerprint: `{data['fingerprint']}`.",
        f"- Prompt fingerprint: `{record['prompt_fingerprint']}`.",
        f"- Packages: {', '.join(f'{k} {v}' for k, v in record['packages'].items())}.",
        *_held_out(before, after, record),
        *_recipe(record),
        "",
        "## Limits",
        "",
        "- Trained and checked on one task, one prompt and the data above; other prompts, label "
        "sets and tasks need an audit of their own.",
        "- Consistency is not accuracy: agreement can be reached on wrong answers. Audit both, on "
        "items that were not trained on.",
        "- Where gold came from a model or from few annotators, their preferences were learned too."
        if origin.needs_gold
        else "- Only the base's own answers were learned: where their average is wrong, so is this model.",
        "- No licence is stated: the licences of the base and of the data apply.",
    ]
    if lora and base.hub_id is None:
        lines.append(
            f"- The base was a local folder, which `{ADAPTER_CONFIG}` names by its path so that peft "
            "finds it. Before this is published, put the base's hub id there and here as "
            "`base_model`."
        )
    return "\n".join([*lines, ""])


def merged_card(record: Record, adapter_card: str, gap: float) -> str:
    """Return the card of an adapter that was merged into its base: what it is, and the adapter's card below."""
    base = base_of(record)
    _, _, body = adapter_card.removeprefix("---\n").partition("---\n")
    return "\n".join(
        [
            "---",
            *_front_matter(base, lora=False),
            "---",
            "",
            f"# {base.name} ({record['kind']}, merged)",
            "",
            f"This is {base}, with the LoRA adapter of the card below merged into its weights. For one prompt, "
            f"the label log-probabilities of the two agree within {gap:.1g}.",
            "",
            "- Name for unswayed: `hf/FOLDER`, where FOLDER holds this file.",
            *(
                f"#{line}" if line.startswith("#") else line
                for line in body.splitlines()
                if ADAPTER_CONFIG not in line and "+lora=" not in line
            ),
            "",
        ]
    )


def name_base(folder: Path, record: Record, place: Path) -> None:
    """Write the base into an adapter: hub id and commit, or the whole path of a local folder."""
    base, file = base_of(record), folder / ADAPTER_CONFIG
    if not file.is_file():
        return
    config = json.loads(file.read_text(encoding="utf-8"))
    config["base_model_name_or_path"] = base.hub_id or str(place.resolve())
    config["revision"] = base.hub_id and base.revision
    file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _front_matter(base: Base, *, lora: bool) -> list[str]:
    """YAML whose values are JSON, which is YAML."""
    fields: dict[str, Any] = {}
    if base.hub_id is not None:
        fields = {
            "base_model": base.hub_id,
            "base_model_relation": "adapter" if lora else "finetune",
        }
    fields |= {
        "library_name": "peft" if lora else "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["unswayed", "selection-bias", "position-bias", *(["lora"] if lora else [])],
    }
    return [f"{key}: {json.dumps(value)}" for key, value in fields.items()]


def _held_out(before: Mapping[str, float], after: Mapping[str, float], record: Record) -> list[str]:
    ends = figures_of(after)
    if not ends:
        return []
    starts: dict[str, Figure] = {figure.name: figure for figure in figures_of(before)}
    rows = [f"| {end.name} | {starts.get(end.name, 'not measured')} | {end} |" for end in ends]
    source = "the data given"
    if evaluation := record["data"].get("evaluation"):
        source = f"an evaluation set with the fingerprint `{evaluation}`"
    return [
        "",
        "## Held-out items",
        "",
        f"{after['held_out/items']:.0f} items that were not trained on, each in {record['presentations']} "
        "presentations with one greedy answer per presentation. In brackets 95% "
        "intervals, clustered by item; they hold for this one training run. They were taken from "
        f"{source}: where `unswayed filter` chose those, the figures before training show "
        "that choice and not the base. Accuracy, if shown, is agreement with the given gold, wrong gold included.",
        "",
        "| figure | before | after |",
        "|---|---|---|",
        *rows,
    ]


def _targets(origin: Origin) -> list[str]:
    temperature = origin.settled.get("temperature")
    wrong = origin.settled.get("wrong_gold")
    lines = []
    if temperature is not None:
        if origin.temperature is not None:
            choice = "as the recipe gives it"
        elif origin.golden:
            choice = f"chosen by the gold of {origin.golden:,} items"
        else:
            choice = "because too few items had gold to choose another"
        lines.append(
            "- Target: the mean of the base's own logits over a balanced set of presentations, asked "
            f"once before training, at temperature {temperature:g}, {choice}."
        )
    if wrong is not None:
        lines.append(f"- Gold: weighed against that target; {wrong:.0%} of it was taken for wrong.")
    if not origin.needs_gold:
        chosen = temperature is not None and origin.temperature is None and origin.golden
        lines.append(f"- Gold: {'for the temperature alone' if chosen else 'none was used'}.")
    return lines


def _shown(origin: Origin) -> str:
    """Describe what moved with a presentation: invariance is learned for that."""
    moved = "candidates were moved through the labels"
    if origin.labels_move:
        return f"{moved}, and labels apart from candidates"
    return f"{moved}; effects of labels or positions alone were not trained"


def _recipe(record: Record) -> list[str]:
    """Write the recipe, with the reward as it was settled, as TOML, whose values are JSON here."""
    settled = {f"reward.{key}": value for key, value in (record["reward"] or {}).items()}
    fields = {
        key: json.dumps(value, ensure_ascii=False)
        for key, value in {**record["recipe"], **settled}.items()
        if value is not None and key not in OF_THE_MACHINE
    }
    lines = (f"{key} = {value}" for key, value in fields.items())
    return [
        "",
        "## Recipe",
        "",
        "All fields, including those that this method does not read:",
        "",
        "```toml",
        *lines,
        "```",
    ]
