"""The English STS sets and SICK out of the archives that they are published in."""

from __future__ import annotations

from use_st5.evaluation.preparation.downloads import Downloads

# The subsets whose sentences and gold scores are both published. Each year's archive calls its
# folder otherwise, and 2016's its files too.
_YEARS = {
    "12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "13": ("FNWN", "headlines", "OnWN"),
    "14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
_WHOLE = {
    "stsbenchmark": ("sts-train.csv", "sts-dev.csv", "sts-test.csv"),
    "sick2014": ("SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt"),
}

# Folder → files.
SEMEVAL = {
    f"STS{year}-en-test": tuple(
        f"STS.{kind}.{subset}.txt" for subset in subsets for kind in ("input", "gs")
    )
    for year, subsets in _YEARS.items()
} | _WHOLE


def read_semeval(downloads: Downloads) -> dict[str, dict[str, bytes]]:
    """Those of STS12 to STS16, the STS Benchmark and SICK that are among the downloads.

    Only names of folders and files change; SentEval's script, whose layout this is, tokenises the
    sentences as well. Readmes and licences come along.

    Returns:
        Folder → file → content, of the sets that are there whole.
    """
    found = {}
    for year, subsets in _YEARS.items():
        for prefix in ("STS", f"STS20{year}"):
            names = {
                f"{prefix}.{kind}.{subset}.txt": f"STS.{kind}.{subset}.txt"
                for subset in subsets
                for kind in ("input", "gs")
            }
            folder = downloads.folder_of(names)
            if folder is not None:
                names |= {name: name for name in downloads.names(folder) if _is_about(name)}
                found[f"STS{year}-en-test"] = {
                    new: downloads.read(folder, old) for old, new in names.items()
                }
                break
    for place, files in _WHOLE.items():
        # SICK's three files are published in an archive each.
        folders = {
            name: each for name in files if (each := downloads.folder_of([name])) is not None
        }
        if len(folders) == len(files):
            beside = folders[files[-1]]
            folders |= {name: beside for name in downloads.names(beside) if _is_about(name)}
            found[place] = {name: downloads.read(folder, name) for name, folder in folders.items()}
    return found


def _is_about(name: str) -> bool:
    """Whether a file says what the others are and who may use them."""
    return "readme" in name.lower() or "license" in name.lower()
