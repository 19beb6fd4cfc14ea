"""The phase "language model": kiln-lm's tokens per second, with a CUDA graph for each token and with plain launches, on a model of
SmolLM2's shape with weights from a seed (lm_model.py). Its tokens are compared with float64's (tests/lm/goldens_check.py)."""
import gzip
import json
import pathlib
import re
import shutil
import sys

import committed
import lm_model
import programs
import records

PHASE = "language model"
HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE / "lm"  # the kit's folder of this phase


# ---- off the device --------------------------------------------------------------------------------------------------


def pack(folder, kiln, program, model, root):
    """Adds kiln-lm, the model's header, the expected tokens, and the machines measured before. `root` is the repository."""
    folder = folder / "lm"
    folder.mkdir()
    programs.pack(program, folder / "kiln-lm.gz")
    (folder / "header.gz").write_bytes(lm_model.keep_header(model))
    shutil.copy(root / "tests/lm/goldens_synthetic.txt", folder / "goldens.txt")
    shutil.copy(root / "tests/lm/goldens_check.py", folder)
    kernels = committed.kernel_text(kiln, root / "tests/consumer/language_model/kernels.yaml")
    about = {"kernels": kernels, "measured": committed.machines(HERE / "results", "times", PHASE, kernels)}
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")


def print_results(results):
    for row in records.read(results, "times"):
        if row.get("phase") == PHASE:
            print(f"kiln-lm {'with' if row['graphs'] else 'without'} graphs: {row['prompt_tokens_per_second']} tokens of a prompt per "
                  f"second, {row['answer_tokens_per_second']} of an answer; {row['result']}: {row['detail']}")


# ---- on the device ---------------------------------------------------------------------------------------------------


def reason_to_skip(run, about):
    """None if the phase has to run."""
    if run.options.device != 0:
        return "kiln-lm takes the first device"
    if committed.has_results(run, about["measured"]):
        return "results of this card, driver and kernel text are committed"
    return None


def make_model(room):
    """Makes the model; returns its path. The goldens are valid only for these bytes."""
    path = room / "model.gguf"
    made = lm_model.make(gzip.decompress((FOLDER / "header.gz").read_bytes()), path)
    expected = re.search(r"^model (\w+)$", (FOLDER / "goldens.txt").read_text(encoding="utf-8"), re.MULTILINE)[1]
    if made != expected:
        raise lm_model.Refused(f"the model has SHA-256 {made}, expected {expected}")
    return path


def measure(run):
    if not FOLDER.exists():
        run.note(phase=PHASE, skipped="the kit was packed without --model")
        return
    sys.path.append(str(FOLDER))
    import goldens_check  # pylint: disable=import-outside-toplevel; it is in the kit only
    about = json.loads((FOLDER / "about.json").read_text(encoding="utf-8"))
    reason = reason_to_skip(run, about)
    if reason:
        run.note(phase=PHASE, skipped=reason)
        return
    room = pathlib.Path(run.room.name)
    program, model = programs.unpack(FOLDER / "kiln-lm.gz", room / "kiln-lm"), make_model(room)
    golden, = goldens_check.read_goldens(FOLDER / "goldens.txt")
    driver = ["--driver", run.options.driver] if run.options.driver else []
    command = [program, str(model), "--bench", "--prompt", golden.text, "-n", str(len(golden.paths["float64"])), *driver]
    for more in [], ["--no-graphs"]:
        said = run.run_tool([*command, *more], run.left(), PHASE)
        if not said:
            continue
        row = json.loads(said)
        is_right, detail = goldens_check.check(golden, "exact", row["tokens"])
        run.count(PHASE, "ok" if is_right else "WRONG")
        run.records.add("times", {"phase": PHASE, "result": "ok" if is_right else "WRONG", "detail": detail,
                                  "kernel_driver": run.card.driver(), "kernels": about["kernels"], **row, **run.card.read()})
