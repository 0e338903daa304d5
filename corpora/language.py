"""Which language a text is likely in: by its script, then by its commonest words.

A hint for someone about to index ("English text expected"), not a classifier: no model, no dependency, and
"unknown" where the signs are few.
"""

import re
import unicodedata

#: The commonest words of languages in Latin script. A word may count for several; the sum decides.
_COMMON_WORDS = {
    "English": "the of and to in is that for was with on as are be this by from which have not were an it",
    "German": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine",
    "French": "de la le les et des en un une du que dans est pour qui sur pas par au plus ce il aux avec",
    "Spanish": "de la que el en y a los del se las por un para con no una su al es lo como más pero sus",
    "Italian": "di e il la che in un per una non è del con si da dei le nel alla della sono gli anche più",
    "Portuguese": "de a o que e do da em um para com não uma os no se na por mais as dos como ao das foi",
    "Dutch": "de van het een en in is dat op te zijn met voor niet aan er om ook als bij door werd naar",
    "Swedish": "och i att det som en på är av för med den till inte om ett han var från har de vid",
    "Danish": "og i at det er en til af på for den med de som der ikke var et fra har om blev",
    "Norwegian": "og i det er på en som til av for med å at den ikke var et har fra de om ble",
    "Finnish": "ja on ei se että oli hän joka mutta ovat myös kun niin sen tai olla kuin hänen mukaan",
    "Polish": "w i na z do się nie jest to że o jak od po za przez dla są ale był także jego",
    "Czech": "a v se na je že s z do o i to ve pro jako za by ale po byl jsou podle",
    "Hungarian": "a az és hogy nem is egy ez volt meg csak de ha mint még már vagy el fel",
    "Romanian": "de și în a la cu pe din că nu un o care mai este pentru sau al prin fost",
    "Turkish": "ve bir bu da de için ile olarak olan çok daha ne gibi sonra en ya var kadar",
}

#: First word of a letter's Unicode name -> language, or script where several languages share it.
_SCRIPTS = {
    "CYRILLIC": "Russian or another in Cyrillic",
    "GREEK": "Greek",
    "ARABIC": "Arabic or another in its script",
    "HEBREW": "Hebrew",
    "HANGUL": "Korean",
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "CJK": "Chinese",
    "THAI": "Thai",
    "DEVANAGARI": "Hindi or another in Devanagari",
}

UNKNOWN = "unknown"

_CHARACTERS = 2000
_WORD = re.compile(r"[^\W\d_]+")
_LANGUAGES_OF: dict[str, list[str]] = {}
for _language, _words in _COMMON_WORDS.items():
    for _word in _words.split():
        if len(_word) == 1:
            continue  # initials, units and lists have them in every language
        _LANGUAGES_OF.setdefault(_word, []).append(_language)


def guess_language(text: str) -> str:
    """Return the language that the first 2,000 characters of a text are likely in, or `unknown`.

    Half of the letters in another script decide; any kana among Chinese characters means Japanese. In Latin
    script a language needs two hits of its commonest words and more than the next.
    """
    text = text[:_CHARACTERS]
    letters = [char for char in text if char.isalpha()]
    if not letters:
        return UNKNOWN
    if not text.isascii():
        scripts: dict[str, int] = {}
        for char in letters:
            script = unicodedata.name(char, "").partition(" ")[0] if ord(char) > 0x24F else "LATIN"
            scripts[script] = scripts.get(script, 0) + 1
        script = max(scripts, key=lambda name: scripts[name])
        if script == "CJK" and scripts.keys() & {"HIRAGANA", "KATAKANA"}:
            return _SCRIPTS["HIRAGANA"]
        if script in _SCRIPTS and scripts[script] * 2 >= len(letters):
            return _SCRIPTS[script]
    hits: dict[str, int] = {}
    for word in _WORD.findall(text.lower()):
        for language in _LANGUAGES_OF.get(word, ()):
            hits[language] = hits.get(language, 0) + 1
    ranked = sorted(hits.items(), key=lambda item: -item[1])
    if not ranked or ranked[0][1] < 2 or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return UNKNOWN
    return ranked[0][0]
