"""The Tatoeba test set as LASER publishes it, its languages by the codes in its file names.

Artetxe and Schwenk, "Massively Multilingual Sentence Embeddings for Zero-Shot Cross-Lingual
Transfer and Beyond" (TACL 2019, arXiv 1812.10464), published 112 languages with LASER. The codes
are those of ISO 639-3, but for ber, which is 639-2's for all Berber languages.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from use_st5.evaluation._text_files import read_side_by_side


@dataclass(frozen=True)
class ParallelSentences:
    """Two lists of one length; each sentence is the translation of the one at its place.

    Attributes:
        language: The code of the language that is not English.
        foreign: Its sentences.
        english: Theirs in English.
    """

    language: str
    foreign: list[str]
    english: list[str]


def read_tatoeba(folder: str | Path, language: str) -> ParallelSentences:
    """Reads `tatoeba.xxx-eng.xxx` and, line for line, `tatoeba.xxx-eng.eng`.

    Args:
        folder: LASER's `data/tatoeba/v1`.
        language: xxx, among `tatoeba_languages.LANGUAGES`.

    Raises:
        FileNotFoundError: One of the files is missing.
        ValueError: They differ in their number of lines, or a line is blank.
    """
    paths = [Path(folder) / f"tatoeba.{language}-eng.{side}" for side in (language, "eng")]
    rows = read_side_by_side(*paths)
    for number, *lines in rows:
        for path, line in zip(paths, lines, strict=True):
            if not line.strip():
                raise ValueError(f"{path}:{number}: expected a sentence, received none.")
    _, foreign, english = zip(*rows, strict=True)
    return ParallelSentences(
        language, *([line.strip() for line in side] for side in (foreign, english))
    )


LANGUAGES = {
    "afr": "Afrikaans",
    "amh": "Amharic",
    "ang": "Old English",
    "ara": "Arabic",
    "arq": "Algerian Arabic",
    "arz": "Egyptian Arabic",
    "ast": "Asturian",
    "awa": "Awadhi",
    "aze": "Azerbaijani",
    "bel": "Belarusian",
    "ben": "Bengali",
    "ber": "Berber",
    "bos": "Bosnian",
    "bre": "Breton",
    "bul": "Bulgarian",
    "cat": "Catalan",
    "cbk": "Chavacano",
    "ceb": "Cebuano",
    "ces": "Czech",
    "cha": "Chamorro",
    "cmn": "Mandarin Chinese",
    "cor": "Cornish",
    "csb": "Kashubian",
    "cym": "Welsh",
    "dan": "Danish",
    "deu": "German",
    "dsb": "Lower Sorbian",
    "dtp": "Central Dusun",
    "ell": "Greek",
    "epo": "Esperanto",
    "est": "Estonian",
    "eus": "Basque",
    "fao": "Faroese",
    "fin": "Finnish",
    "fra": "French",
    "fry": "West Frisian",
    "gla": "Scottish Gaelic",
    "gle": "Irish",
    "glg": "Galician",
    "gsw": "Swiss German",
    "heb": "Hebrew",
    "hin": "Hindi",
    "hrv": "Croatian",
    "hsb": "Upper Sorbian",
    "hun": "Hungarian",
    "hye": "Armenian",
    "ido": "Ido",
    "ile": "Interlingue",
    "ina": "Interlingua",
    "ind": "Indonesian",
    "isl": "Icelandic",
    "ita": "Italian",
    "jav": "Javanese",
    "jpn": "Japanese",
    "kab": "Kabyle",
    "kat": "Georgian",
    "kaz": "Kazakh",
    "khm": "Khmer",
    "kor": "Korean",
    "kur": "Kurdish",
    "kzj": "Coastal Kadazan",
    "lat": "Latin",
    "lfn": "Lingua Franca Nova",
    "lit": "Lithuanian",
    "lvs": "Latvian",
    "mal": "Malayalam",
    "mar": "Marathi",
    "max": "North Moluccan Malay",
    "mhr": "Meadow Mari",
    "mkd": "Macedonian",
    "mon": "Mongolian",
    "nds": "Low German",
    "nld": "Dutch",
    "nno": "Norwegian Nynorsk",
    "nob": "Norwegian Bokmål",
    "nov": "Novial",
    "oci": "Occitan",
    "orv": "Old East Slavic",
    "pam": "Kapampangan",
    "pes": "Persian",
    "pms": "Piedmontese",
    "pol": "Polish",
    "por": "Portuguese",
    "ron": "Romanian",
    "rus": "Russian",
    "slk": "Slovak",
    "slv": "Slovenian",
    "spa": "Spanish",
    "sqi": "Albanian",
    "srp": "Serbian",
    "swe": "Swedish",
    "swg": "Swabian",
    "swh": "Swahili",
    "tam": "Tamil",
    "tat": "Tatar",
    "tel": "Telugu",
    "tgl": "Tagalog",
    "tha": "Thai",
    "tuk": "Turkmen",
    "tur": "Turkish",
    "tzl": "Talossan",
    "uig": "Uyghur",
    "ukr": "Ukrainian",
    "urd": "Urdu",
    "uzb": "Uzbek",
    "vie": "Vietnamese",
    "war": "Waray",
    "wuu": "Wu Chinese",
    "xho": "Xhosa",
    "yid": "Yiddish",
    "yue": "Cantonese",
    "zsm": "Malay",
}

_CODES = {
    # XNLI's languages but English: m-ST5's Table 7, as in mSimCSE's eval/evaluation_retrieval.py.
    14: "ara bul cmn deu ell fra hin rus spa swh tha tur urd vie",
    # XTREME's: TASK2LANGS["tatoeba"] in its evaluate.py. m-ST5's Table 7 agrees.
    36: "afr ara ben bul cmn deu ell est eus fin fra heb hin hun ind ita jav jpn "
    "kat kaz kor mal mar nld pes por rus spa swh tam tel tgl tha tur urd vie",
    112: " ".join(LANGUAGES),
}

# How many languages → their codes.
GROUPS = {size: tuple(codes.split()) for size, codes in _CODES.items()}
