# SPDX-License-Identifier: Apache-2.0
"""Cells as cases: defaults put in, files found, factors that do not go together refused, idle ones reset.

The rules here hold on every machine. What only some machines can do is `pybench.machine`'s question: there a case is
`unsupported`, here a plan is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pybench.case import Case
from pybench.case.factors import BOTH, DIGITS_SIZE, FACTORS, factors_of, is_idle
from pybench.catalogue.catalogue import BUILT_IN, Catalogue
from pybench.catalogue.data_sets import DIGITS, SYNTHETIC, TRAINED_ON
from pybench.catalogue.models import Model
from pybench.catalogue.paths import PATHS
from pybench.catalogue.workloads import Workload
from pybench.catalogue.zoo import LIBRARIES, is_named, library_of
from pybench.document import Node, Place
from pybench.errors import Problem
from pybench.onnx_file.graph import OnnxModel
from pybench.onnx_file.inputs import FreeDimensions, Misfit, batch_to_rewrite, takes_ids
from pybench.plan.cells import Cell, Path, Setting, count_of, text_of, value_of
from pybench.plan.decoders import decoder_problem
from pybench.plan.fed_inputs import misfit_of_inputs
from pybench.plan.files import FileProblem, UserFiles
from pybench.plan.heads import head_problem
from pybench.plan.labelled import completed, labelled_misfit
from pybench.plan.meaning import misplaced, where_it_applies
from pybench.plan.own_models import misfit_of
from pybench.plan.pictures import held_out_problem, picture_problem
from pybench.plan.quantising import pair_problems, quantiser_problems
from pybench.plan.training import is_trained_on, trainable_models, untrainable

_KINDS = {"language": "a language model", "image": "an image model"}


@dataclass(slots=True)
class CaseBuilder:
    """Turns cells into cases and remembers what was wrong, which defaults were of use, and where files are named."""

    root: Node
    defaults: Cell
    files: UserFiles
    catalogue: Catalogue = BUILT_IN
    problems: list[Problem] = field(default_factory=list)
    used_defaults: set[str] = field(default_factory=set)
    places: dict[tuple[str, str], Place] = field(default_factory=dict)

    def build(self, cells: Iterable[Cell], entry: int, damaged: bool) -> list[Case]:
        """The cases of an entry's cells. `damaged`: parts of it were unreadable, so nothing is said to be missing."""
        built = []
        idle: dict[Path, bool] = {}
        for cell in cells:
            settings = self._with_defaults(cell)
            case = self._sound_case(settings, cell, entry, damaged)
            # What a refused case would use is not known.
            resting = frozenset() if case is None else case.idle | self._unread(case)
            for name, setting in cell.items():
                if setting.value is not None:  # null asks for nothing
                    key = _key(setting.path)
                    idle[key] = idle.get(key, True) and name in resting
            if case is not None:
                built.append(_at_rest(case, resting))
                self._remember(settings)
        for path in (path for path, always in idle.items() if always and not damaged):
            name = str(path[-1])
            rule = factors_of(self.catalogue)[name].idle
            assert rule is not None
            self._say(path, f"`{name}` changes nothing in this entry", rule.because, at_key=True)
        return built

    def unused_defaults(self) -> list[Problem]:
        """Defaults that no entry took."""
        return [
            self.root.key_place(setting.path).problem(
                f"`{name}` applies to no entry of the matrix", where_it_applies(name, self.catalogue)
            )
            for name, setting in self.defaults.items()
            if name not in self.used_defaults
        ]

    # --- one cell ---------------------------------------------------------------------------------------------------

    def _sound_case(self, settings: dict[str, Setting], cell: Cell, entry: int, damaged: bool) -> Case | None:
        """The case of a cell; None where something is wrong with it, which is then said."""
        if not self._fits(settings, cell, entry, damaged):
            return None
        case = self._case(settings)
        if case is None or not self._feeds(case, settings, damaged) or not self._can_be(case, settings):
            return None
        return case

    def _with_defaults(self, cell: Cell) -> dict[str, Setting]:
        settings = dict(cell)
        for name in ("workload", "model", *self.defaults):
            if name not in self.defaults or (name == "batch" and "batch_tokens" in cell):
                continue
            workload, model = text_of(settings, "workload"), text_of(settings, "model")
            if name in cell or misplaced(name, workload, model, self.catalogue) is None:
                self.used_defaults.add(name)
                settings.setdefault(name, self.defaults[name])
        return self._configured(settings)

    def _configured(self, settings: dict[str, Setting]) -> dict[str, Setting]:
        """The settings with the file of a model that is given as a folder."""
        model = settings.get("model")
        if model is None or model.value is None or model.value in self.catalogue.models or is_named(str(model.value)):
            return settings
        return settings | {"model": replace(model, value=self.files.configured(str(model.value)))}

    def _fits(self, settings: dict[str, Setting], cell: Cell, entry: int, damaged: bool) -> bool:
        """Whether the settings go together; says what does not."""
        before = len(self.problems)
        workload, model = text_of(settings, "workload"), text_of(settings, "model")
        place: Path = ("matrix", entry)
        for name in settings:
            if misplaced(name, workload, model, self.catalogue) is None:
                self._digest(name, settings)
        if workload is None:
            if not damaged:
                self._say(place, "`workload` is missing", f"one of {', '.join(self.catalogue.workloads)}")
            return False
        for name, setting in cell.items():
            wrong = misplaced(name, workload, model, self.catalogue)
            if wrong is not None:
                self._say(setting.path, wrong, where_it_applies(name, self.catalogue), at_key=True)
        self._check_model(settings, workload, model)
        if not damaged:
            self._check_arrivals(settings, workload)
            self._check_loading(settings, workload, model)
            row = self.catalogue.workloads[workload]
            for found in (*quantiser_problems(settings, row, self.catalogue), *pair_problems(settings, place, row)):
                self._say(found.path, found.what, found.hint)
        if "batch" in cell and "batch_tokens" in cell:
            self._say(
                cell["batch_tokens"].path,
                "`batch_tokens` and `batch` both set the batch size",
                "remove one of them",
                at_key=True,
            )
        missing = _missing(settings, workload, model, self.catalogue)
        for name, hint in () if damaged else missing:
            if name == "images" and not self._has_model(model):
                continue  # what it needs follows from the model that is meant
            self._say(place, f"`{name}` is missing: workload {workload} needs it", hint)
        return len(self.problems) == before and not missing

    def _has_model(self, model: str | None) -> bool:
        """Whether a model is built in, a library's or a file that can be run. What else it is is said at its place."""
        if model is None or model in self.catalogue.models or is_named(model):
            return True
        try:
            self.files.find("model", model)
        except FileProblem:
            return False
        return True

    def _check_model(self, settings: dict[str, Setting], workload: str, model: str | None) -> None:
        measured = self.catalogue.workloads[workload]
        if model is None or not measured.uses("model"):
            return
        row = self.catalogue.models.get(model)
        is_given = measured.by_task and text_of(settings, "data") is not None
        if not (measured.accepts(row, library_of(model)) or is_given):
            taken = [_KINDS.get(kind, f"a model of kind {kind}") for kind in measured.kinds]
            kinds = " or ".join([*taken, "one with data of its own"] if measured.by_task else taken)
            what = f"workload {workload} takes {kinds}, not {model}"
            self._say(settings["model"].path, what, f"one of {_models_of(measured, self.catalogue)}")
        executor = self.catalogue.runtimes.get(text_of(settings, "runtime") or "")
        if executor is not None and executor.opens == "equations" and (row is None or row.solved_by is None):
            solved = ", ".join(each.name for each in self.catalogue.models.values() if each.solved_by is not None)
            self._say(settings["model"].path, f"runtime {executor.name} does not solve {model}", f"use model: {solved}")
        self._check_length(settings, measured, model, None if row is None else row.longest_sequence)
        if row is not None and row.takes_images and "image_size" in settings:
            self._check_size(settings, measured, row)
        checkpoint = text_of(settings, "checkpoint")
        if checkpoint is not None and row is None and library_of(model) is None:
            what = "`checkpoint` is for built-in models and those of libraries; an ONNX file contains its weights"
            self._say(settings["checkpoint"].path, what)
        elif checkpoint in TRAINED_ON and (row is None or not is_trained_on(row, checkpoint)):
            hint = f"those that are: {trainable_models(checkpoint, self.catalogue)}"
            self._say(settings["checkpoint"].path, f"{model} is not trained on {checkpoint}", hint)
        elif checkpoint is not None and row is not None and self.files.is_folder(str(checkpoint)):
            self._say(settings["checkpoint"].path, f"`checkpoint`: {checkpoint} is a folder", "give the file in it")

    def _check_length(self, settings: dict[str, Setting], measured: Workload, model: str, longest: int | None) -> None:
        """Whether the model has positions for the sequence, and for what it is continued by."""
        read, added = (count_of(settings, name) for name in ("seq_len", "new_tokens"))
        if longest is None or read + (added if measured.generates else 0) <= longest:
            return
        what = f"{model} takes sequences of up to {longest} tokens"
        if not measured.generates or read >= longest:
            self._say(settings["seq_len"].path, what)
            return
        place = "new_tokens" if "new_tokens" in settings else "seq_len"
        self._say(
            settings[place].path,
            f"{what}, and seq_len {read} with new_tokens {added} is {read + added}",
            f"use new_tokens of at most {longest - read}" if longest - read > 1 else "use a shorter seq_len",
        )

    def _check_size(self, settings: dict[str, Setting], measured: Workload, row: Model) -> None:
        """Whether the model can be built for the images, and the images can have that size."""
        size, own, path = count_of(settings, "image_size"), row.shape[-1], settings["image_size"].path
        if size in (0, own) or not measured.uses("sizing"):
            return
        if row.least_size is None:
            self._say(path, f"{row.name} takes images of {own}x{own} and no others", "leave `image_size` out")
        elif size < row.least_size:
            what = f"images of {size}x{size} are too small for {row.name}"
            self._say(path, what, f"use at least {row.least_size}")
        elif measured.uses("images") and self._images_of(settings, measured, row) == DIGITS:
            what = f"the digits are {DIGITS_SIZE}x{DIGITS_SIZE} and are taken as they are, not at {size}x{size}"
            self._say(path, what, f"leave `image_size` out, or use `images: {SYNTHETIC}`")

    def _images_of(self, settings: dict[str, Setting], measured: Workload, row: Model) -> str | None:
        """The images that a case of these settings names, or is judged on without naming them."""
        named = text_of(settings, "images")
        trained = SYNTHETIC if text_of(settings, "checkpoint") == SYNTHETIC else row.trained_on
        return named or (trained if measured.needs_images else None)

    def _check_arrivals(self, settings: dict[str, Setting], workload: str) -> None:
        arrivals = text_of(settings, "arrivals")
        if not self.catalogue.workloads[workload].uses("arriving") or arrivals == FACTORS["arrivals"].default:
            return
        if value_of(settings, "arrival_rate_per_s") is None:
            hint = "as in `arrival_rate_per_s: 100`: iterations a second"
            self._say(settings["arrivals"].path, f"{arrivals} arrivals need `arrival_rate_per_s`", hint)

    def _check_loading(self, settings: dict[str, Setting], workload: str, model: str | None) -> None:
        """Whether there is something to read for processes that read."""
        if "workers" not in settings or misplaced("workers", workload, model, self.catalogue) is not None:
            return
        if value_of(settings, "workers") is not None and text_of(settings, "images") is None:
            what = "`workers` read images, and `images` names none"
            self._say(settings["workers"].path, what, f"set `images`: {SYNTHETIC}, or a path")

    def _case(self, settings: dict[str, Setting]) -> Case | None:
        values = {name: setting.value for name, setting in settings.items() if name in FACTORS or "." in name}
        if "batch_tokens" in settings:
            batch = self._batch(settings)
            if batch is None:
                return None
            values["batch"] = batch
        row = self.catalogue.workloads[str(values["workload"])]
        if values.get("runtime") is None and values.get("model") is not None:
            values["runtime"] = row.runtime
        if row.needs_images and values.get("images") is None and values.get("data") is None:
            trained = values.get("checkpoint") == SYNTHETIC
            values["images"] = SYNTHETIC if trained else self.catalogue.models[str(values["model"])].trained_on
        digests = {name: self._digest(name, settings) for name in values}
        sources = tuple(sorted((name, digest) for name, digest in digests.items() if digest))
        case = Case(workload=row.name, catalogue=self.catalogue).with_factors(**values, sources=sources)
        if case.fixed_batch is None and digests.get("model") is not None and case.library is None:
            case = case.with_factors(fixed_batch=self._fixed_batch(case))
        if case.data is not None and row.by_task:
            case = completed(case, self._own_model(case), self.files.find("data", case.data).path)
        return case

    def _fixed_batch(self, case: Case) -> int | None:
        """The batch of the user's file, where another is asked for; None where nothing opens the file."""
        if case.model is None or case.runtime_row is None or case.runtime_row.opens == "module":
            return None
        return batch_to_rewrite(self.files.model(case.model).graph.fed, case.batch)

    def _own_model(self, case: Case) -> OnnxModel | None:
        """What the user's ONNX file says, if the case has one."""
        return self.files.model(case.model) if case.model is not None and case.names_onnx else None

    def _unread(self, case: Case) -> frozenset[str]:
        """Factors that change nothing about a case, because the user's ONNX file has no input that follows them."""
        model = self._own_model(case)
        return frozenset({"seq_len"} if model is not None and not takes_ids(model.graph.fed) else ())

    def _feeds(self, case: Case, settings: dict[str, Setting], damaged: bool) -> bool:
        """Whether the user's ONNX file, if the case has one, and what is fed to the model fit; says what does not."""
        misfit, about = self._misfit(case)
        if misfit is None:
            return True
        if damaged and ("shapes" if isinstance(misfit, FreeDimensions) else misfit.factor) not in settings:
            return False  # it may have been set in what was unreadable
        written = {"batch": "batch_tokens", "task": "data", "output": "data"}.get(misfit.factor, "")
        place = next((name for name in (misfit.factor, written) if name in settings), "model")
        self._say(settings[place].path, f"`{place}`: {about}: {misfit.what}", misfit.hint)
        return False

    def _misfit(self, case: Case) -> tuple[Misfit | None, str]:
        """What does not fit, and the file or value that it is about."""
        if case.model is None:
            return None, ""
        model = self._own_model(case)
        if model is not None and (found := misfit_of(model, case, of_images=_judges_images(case))):
            return found, case.model
        if case.data is not None and not is_idle("data", case):
            labelled = labelled_misfit(case, model, self.files.find("data", case.data).path)
            if labelled is not None:
                return labelled, case.data
        if not case.workload_row.uses("inputs") or is_idle("inputs", case):
            return None, ""
        is_known = case.names_file("inputs") and case.library is None  # what a library's model takes, the run tells
        arrays = self.files.find("inputs", case.inputs).path if is_known else None
        return misfit_of_inputs(case, model, arrays), case.inputs

    def _can_be(self, case: Case, settings: dict[str, Setting]) -> bool:
        """Whether what is asked together can be done together; says what does not fit."""
        before = len(self.problems)
        row = case.workload_row
        wrong = untrainable(case)
        untrained = None if wrong is None else (wrong.factor, wrong.what, wrong.hint)
        found = (
            head_problem(case),
            picture_problem(case, self.files),
            held_out_problem(case, self.files),
            decoder_problem(case, self.files),
        )
        for factor, what, hint in filter(None, (untrained, *found)):
            self._say(settings[factor if factor in settings else "model"].path, what, hint)
        if row.uses("copying") and case.streams > case.transfer_bytes:
            what = f"{case.transfer_bytes} bytes cannot be cut into {case.streams} parts"
            self._say(settings["streams"].path, what, "use fewer `streams`")
        if row.uses("copying") and case.direction == BOTH and not (case.pinned and case.non_blocking):
            what = "copies in both directions run at once only with `pinned: true` and `non_blocking: true`"
            self._say(settings["direction"].path, what, "set both, or use `direction: h2d` or `d2h`")
        return len(self.problems) == before

    def _batch(self, settings: dict[str, Setting]) -> int | None:
        setting = settings["batch_tokens"]
        tokens, seq_len = int(setting.value or 0), count_of(settings, "seq_len") or 1
        batch, rest = divmod(tokens, seq_len)
        if rest == 0 and batch > 0:
            return batch
        what = f"`batch_tokens` {tokens} is not a multiple of seq_len {seq_len}"
        self._say(setting.path, what, _multiples(tokens, seq_len))
        return None

    def _digest(self, name: str, settings: dict[str, Setting]) -> str | None:
        """The digest of a user's file; None for what is no such file, and where something is wrong with it."""
        setting = settings.get(name)
        if setting is None or setting.value is None or name not in FACTORS or FACTORS[name].kind != "file":
            return None
        value = str(setting.value)
        if value in factors_of(self.catalogue)[name].choices or (name == "model" and is_named(value)):
            return None
        try:
            return self.files.find(name, value).sha256
        except FileProblem as problem:
            self._say(setting.path, problem.what, problem.hint)
            return None

    def _remember(self, settings: dict[str, Setting]) -> None:
        """Where models and files are named first: what is wrong with them may show on a machine only."""
        for name, setting in settings.items():
            if name in FACTORS and FACTORS[name].kind == "file" and setting.value is not None:
                self.places.setdefault((name, str(setting.value)), self.root.at(setting.path).place)

    def _say(self, path: Path, what: str, hint: str | None = None, at_key: bool = False) -> None:
        place = self.root.key_place(_key(path)) if at_key else self.root.at(path).place
        self.problems.append(place.problem(what, hint))


def _missing(
    settings: dict[str, Setting], workload: str, model: str | None, catalogue: Catalogue
) -> list[tuple[str, str]]:
    """Factors that a workload needs and that have no default, each with what to give."""
    measured = catalogue.workloads[workload]
    if not measured.uses("model"):
        return []
    found = []
    if model is None and measured.model == "required":
        found.append(("model", f"one of {_models_of(measured, catalogue)}"))
    if text_of(settings, "runtime") is None and measured.runtime is None:
        found.append(("runtime", f"one of {', '.join(catalogue.runtimes)}"))
    if measured.model == "optional" and model is None and not PATHS[str(value_of(settings, "path"))].reads_text:
        reading = ", ".join(name for name, path in PATHS.items() if path.reads_text)
        found.append(("path", f"one of {reading}; without one and without a model nothing is done"))
    if measured.fits and value_of(settings, "target_top1_percent") is None:
        found.append(("target_top1_percent", "as in `target_top1_percent: 95`"))
    row = catalogue.models.get(model or "")
    judges = measured.needs_images and model is not None and measured.accepts(row)  # others: a misfit
    trained = text_of(settings, "checkpoint") in TRAINED_ON or (row is not None and (row.trained_on or row.judged_on))
    if judges and not trained and text_of(settings, "images") is None and text_of(settings, "data") is None:
        what = f"{SYNTHETIC}, or a folder with one folder of images a class; or set `data` to labelled arrays"
        found.append(("images", what))
    return found


def _models_of(workload: Workload, catalogue: Catalogue) -> str:
    """The models that a workload takes, for a hint."""
    forms = (row.form for row in LIBRARIES.values() if workload.accepts(None, row))
    own = ("or your own ONNX file",) if workload.takes_files else ()
    return ", ".join((*catalogue.models_of(workload), *forms, *own))


def _multiples(tokens: int, seq_len: int) -> str:
    below = tokens // seq_len * seq_len
    return f"use {below} or {below + seq_len}" if below else f"use {seq_len}"


def _at_rest(case: Case, resting: frozenset[str]) -> Case:
    """The case with idle factors at their default, so that it is one case however they are set."""
    sources = tuple(source for source in case.sources if source[0] not in resting)
    return case.with_factors(**{name: factors_of(case.catalogue)[name].default for name in resting}, sources=sources)


def _key(path: Path) -> Path:
    return path[:-1] if isinstance(path[-1], int) else path


def _judges_images(case: Case) -> bool:
    """Whether images are what the model is fed with, so that it has to take them."""
    row = case.workload_row
    return case.data is None and (row.kinds == ("image",) or (row.judges_images and case.images is not None))
