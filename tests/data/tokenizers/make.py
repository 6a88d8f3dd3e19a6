# SPDX-License-Identifier: Apache-2.0
"""Small tokenizer.json files, and what Hugging Face's tokenizers makes of texts with them.

    pip install tokenizers; python3 make.py

Where training finds two merges as good it may take another one each time.

Writes NAME.json for each kind below and expected.json: texts; for each tokenizer their ids
without begin and end tokens; and what ids are as text again where that is another text.

steps.json has one small model, and rows of a setting, a text, its ids and these as text: a
word's last character is another token than the same inside, so that ids show the words.
"""
import json
import os

from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))

TRAINING = """
A plugin is a shared object that states which formats it reads and writes. The planner
chooses a format for every tensor, and inserts a conversion where formats do not match.
It's what the layers' authors wrote; they'll change it, and we've seen that it doesn't hurt.
There was a little girl who had a little dog. The dog was happy, and the girl was happy too.
One day they went to the park. "Look at the birds!" said the girl. They played all day long.
int main(void) { for (int i = 0; i < 10; i++) printf("%d\\n", i * 2); return 0; }
In 1984 there were 365 days, 12 months, 52 weeks, 8760 hours and 31536000 seconds.
Der Fluß fließt über die Brücke. Où est la bibliothèque? El niño comió mañana.
""".strip().split("\n")

TEXTS = [
    "", "a", " ", "  ", " a", "a ", "  a  b  ", "Hello world", "THE LITTLE GIRL",
    "Hello, World! It's 2024; we'll see 3.14159 & 1,000,000.", "\n", "\n\n", "a\n\nb",
    " \n \n x", "\t\tif (x):\r\n\t\treturn  y;", "don't DON'T I'LL you'Ve he'd 'Tis 's",
    "\u017f'\u017f", "\u0130stanbul \u03a3\u0391\u03a3", "\u00e9 e\u0301 n\u0303 \u212b",
    "\ufb01 \u00bd \u00b2 \u2460 \u2167", "\u0301a\u0327\u0301\u0323",
    "q\u0323\u0307 q\u0307\u0323",
    "\uac01 \ud55c\uad6d\uc5b4", "\u1112\u1161\u11ab", "\u65e5\u672c\u8a9e\u3001\u304b\u306a",
    "\u4e2d\u6587\u3002", "\u041f\u0440\u0438\u0432\u0435\u0442",
    "\u0645\u0631\u062d\u0628\u0627 \u0661\u0662",
    "\u0928\u092e\u0938\u094d\u0924\u0947", "\U0001f600\U0001f603",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd \U0001f1e9\U0001f1ea",
    "a\u200bb\u200cc\u200dd\ufeffe", "\u00a0x\u2003y\u3000z\u0085w\u180eu\u2028t",
    "\x00\x01\x1b\x7f\u0080", "\u2581a \u2581 \u2581\u2581b", "<0x41> <0xE2>", "aaaaaaaaaaaaaaaa",
    "the" * 40, "1234567890 12 123 1234", "\uff11\uff12 \u0663 \u096a", "x=1;y=[2,3]{4}(5)<6>",
    "http://example.com/a?b=c&d=e#f", "...!!!???", "--- *** ___ ~~~",
    "\u201cquotes\u201d \u2014 \u2026 ",
    "<s>the</s>", " <s> the <mask> a </s> ", "<s><s>", "the[SEP]a", "<|x|>  <|y|>  a<|y|>",
    "  <|y|>  <|y|>", "newtok xnewtok newtoky newtok", "NEWTOK \u00e9newtok newtok.",
    "   \n   \n\n  end",
    "x   ", "   x", "a\r\nb\rc", "\u1e9b\u0323 \u00df \u1e9e", "\ufdfa", "unaffable happy",
    "\ufffd\ufffd", "\U0010ffff\ue000",
]

# Each rule of added tokens once.
ADDED = [
    AddedToken("newtok", single_word=True),
    AddedToken("<|x|>", normalized=True),
    AddedToken("<|y|>", lstrip=True, rstrip=True, normalized=False),
]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
ALPHABET = pre_tokenizers.ByteLevel.alphabet()
BYTES = [f"<0x{i:02X}>" for i in range(256)]


def bytes_of(**settings):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, **settings)


def gpt2():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = bytes_of()
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel()
    train(t, 400, ["<|endoftext|>"], initial_alphabet=ALPHABET)
    return t


def roberta():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    t.decoder = decoders.ByteLevel()
    train(t, 330, ["<s>", "</s>"], initial_alphabet=ALPHABET)
    t.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    return t


def llama3():
    t = Tokenizer(models.BPE(ignore_merges=True))
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), "isolated"), bytes_of(use_regex=False)])
    t.decoder = decoders.ByteLevel()
    train(t, 400, [], initial_alphabet=ALPHABET)
    t.add_special_tokens(["<s>", "</s>"])
    t.add_tokens(ADDED)
    t.post_processor = processors.Sequence([processors.ByteLevel(), template(t, "<s> $A")])
    return t


def llama2():
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(),
                                   decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    train(t, 200, ["<unk>", "<s>", "</s>"])
    t = with_bytes(t)
    t.add_tokens(ADDED)
    t.post_processor = template(t, "<s> $A")
    return t


def with_bytes(t):
    """Byte tokens behind the first three, as plain ones: training knows only special ones."""
    parts = json.loads(t.to_str())
    words = sorted(parts["model"]["vocab"].items(), key=lambda word: word[1])
    names = [word for word, _ in words[:3]] + BYTES + [word for word, _ in words[3:]]
    parts["model"]["vocab"] = {name: i for i, name in enumerate(names)}
    return Tokenizer.from_str(json.dumps(parts))


def metaspace():
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=False))
    t.normalizer = normalizers.NFKC()
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True),
         pre_tokenizers.Metaspace("\u2581", "first")])
    t.decoder = decoders.Metaspace("\u2581", "first")
    train(t, 250, ["<unk>", "<s>", "</s>"])
    t.add_tokens(ADDED[2:])
    return t


def clip():
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([
        normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(CLIP), "removed", invert=True), bytes_of()])
    t.decoder = decoders.BPEDecoder("</w>")
    train(t, 560, ["<unk>", "<s>", "</s>"], end_of_word_suffix="</w>",
          initial_alphabet=ALPHABET)
    t.add_tokens(ADDED[:1])
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 1))
    return t


def bert():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=50))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    train(t, 350, ["[PAD]", "[UNK]", "[CLS]", "[SEP]"], trainers.WordPieceTrainer)
    t.post_processor = template(t, "[CLS] $A [SEP]")
    return t


def template(t, single):
    names = [x for x in single.split() if x != "$A"]
    return processors.TemplateProcessing(
        single=single, special_tokens=[(x, t.token_to_id(x)) for x in names])


def train(t, size, special, trainer=trainers.BpeTrainer, **settings):
    t.train_from_iterator(TRAINING, trainer(vocab_size=size, special_tokens=special,
                                            show_progress=False, **settings))


# ---- steps -------------------------------------------------------------------------------

SIGNS = [chr(c) for c in range(32, 127)] + list(
    "\n\t\u00e9\u0301\u0323\u2581\u0120\u00c3\u00a9\u4e2d\u00a0")


def signs_model():
    words = ["<unk>"] + SIGNS + [c + "|" for c in SIGNS]
    return {"type": "BPE", "unk_token": "<unk>", "end_of_word_suffix": "|",
            "vocab": {word: i for i, word in enumerate(words)}, "merges": []}


def part(kind, **settings):
    return {"type": kind, **settings}


def rows():
    """Member of tokenizer.json, its value, text."""
    for behavior in "Removed Isolated MergedWithPrevious MergedWithNext Contiguous".split():
        for pattern in ({"String": "--"}, {"Regex": "\\s|-"}, {"Regex": "(?=[A-Z])|,*"}):
            for invert in (False, True):
                yield "pre_tokenizer", part("Split", pattern=pattern, behavior=behavior,
                                            invert=invert), "--a--Bc-- d, E,,--"
        yield "pre_tokenizer", part("Punctuation", behavior=behavior), "..a,b $c. "
    yield "pre_tokenizer", part("Digits", individual_digits=True), "a12 3b"
    yield "pre_tokenizer", part("Digits", individual_digits=False), "a12 3b"
    yield "pre_tokenizer", part("Whitespace"), " a_b, c-d e\u0301\n"
    yield "pre_tokenizer", part("WhitespaceSplit"), " a_b,\u00a0 c\t"
    yield "pre_tokenizer", part("BertPreTokenizer"), " a_b, c--d "
    yield "pre_tokenizer", part("CharDelimiterSplit", delimiter="b"), "abcbbd"
    for scheme in ("never", "first", "always"):
        for split in (False, True):
            metaspace = part("Metaspace", replacement="\u2581", prepend_scheme=scheme, split=split)
            for text in ("a b", " a  b ", "\u2581a", "<s>a b<s> c"):
                yield "pre_tokenizer", metaspace, text
            yield "pre_tokenizer", part("Sequence", pretokenizers=[
                part("Digits", individual_digits=True), metaspace]), "a1 b"
    for prefix in (False, True):
        for regex in (False, True):
            yield "pre_tokenizer", part("ByteLevel", add_prefix_space=prefix, trim_offsets=True,
                                        use_regex=regex), "a  b1's<s>\u00e9"
    for word in ("\\w+", "\\W+", "[\\w-]+", "\\d{1,2}", "[^\\S]", "\\p{Lu}\\p{Ll}*", "(?i:B)",
                 "(?<=a)b", "(?<!a)b", "(?>b+)", "b++", "b{2}", "b{1,}?", "(?i)B|A", "\\x{2000}|b",
                 "^a", "b$", "\\Aa",
                 "\\u0061", "\\x61", "[a\\-c]", "[]b]", "[^b[ c-e]]+", "[a[b]c]", "{", "\\/|\\.",
                 "(b)(?!b)"):
        yield "pre_tokenizer", part("Split", pattern={"Regex": word}, behavior="Isolated",
                                    invert=False), "ab-bb\u00e9 Ab\nab12{3/"
    for kind in "NFC NFD NFKC NFKD Lowercase StripAccents ByteLevel".split():
        yield "normalizer", part(kind), "A\u00e9e\u0301\u0301\u0323 \ufb01"
    for left, right in ((True, False), (False, True), (True, True)):
        yield "normalizer", part("Strip", strip_left=left, strip_right=right), " \u00a0a b\t\n"
    yield "normalizer", part("Prepend", prepend="__"), "a<s>b"
    yield "normalizer", part("Replace", pattern={"String": "aa"}, content="b"), "aaa"
    yield "normalizer", part("Replace", pattern={"Regex": "[a-c]+"}, content=""), "xabcy"
    yield "normalizer", part("Sequence", normalizers=[
        part("Lowercase"), part("Replace", pattern={"String": "a"}, content="xy")]), "Aa"
    for settings in ((1, 1, None, 1), (0, 0, False, 0), (1, 0, True, 0), (0, 1, False, 1)):
        clean, apart, accents, lower = settings
        yield "normalizer", part(
            "BertNormalizer", clean_text=bool(clean), handle_chinese_chars=bool(apart),
            strip_accents=accents, lowercase=bool(lower)), "A\u00e9\u4e2d\tb\ufffdc\u200d"
    yield "decoder", part("Metaspace", replacement="\u2581", prepend_scheme="never",
                          split=True), "\u2581a\u2581b"
    yield "decoder", part("Metaspace", replacement="\u2581", prepend_scheme="always",
                          split=True), "\u2581a\u2581b"
    yield "decoder", part("Strip", content="a", start=1, stop=0), "aab"
    yield "decoder", part("BPEDecoder", suffix="|"), "ab"
    yield "decoder", part("WordPiece", prefix="#", cleanup=False), "a#b.c"
    yield "decoder", part("WordPiece", prefix="#", cleanup=True), "a#b.c!"
    yield "decoder", part("Fuse"), "ab"
    for start, stop in ((2, 0), (0, 2), (1, 1), (9, 0)):
        yield "decoder", part("Sequence", decoders=[
            part("Replace", pattern={"String": "|"}, content=""), part("Fuse"),
            part("Strip", content="a", start=start, stop=stop)]), "aaabaacaa"
    yield "decoder", part("ByteLevel", add_prefix_space=True, trim_offsets=True,
                          use_regex=True), "a\u0120\u00c3\u00a9\u4e2d"
    yield "decoder", None, "ab"


def steps():
    special = [{"id": 1000, "content": "<s>", "special": True, "single_word": False,
                "lstrip": False, "rstrip": False, "normalized": False}]
    common = {"added_tokens": special, "model": signs_model()}
    base = {"version": "1.0", "truncation": None, "padding": None, "normalizer": None,
            "pre_tokenizer": None, "post_processor": None, "decoder": None}
    # The library numbers added tokens itself, from the end of the vocabulary on.
    special[0]["id"] = len(common["model"]["vocab"])
    table = []
    for member, value, text in rows():
        t = Tokenizer.from_str(json.dumps({**base, **common, member: value}))
        ids = t.encode(text, add_special_tokens=False).ids
        table.append([member, value, text, ids, t.decode(ids)])
    return {**common, "rows": table}


def write(name, value):
    is_table = name in ("expected.json", "steps.json")
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=is_table, separators=(",", ":"))
        f.write("\n")


def main():
    expected = {"texts": TEXTS, "tokenizers": {}}
    for make in (gpt2, roberta, llama3, llama2, metaspace, clip, bert):
        name, t = make.__name__, make()
        write(name + ".json", json.loads(t.to_str()))
        ids = [t.encode(text, add_special_tokens=False).ids for text in TEXTS]
        back = [t.decode(i) if i else "" for i in ids]
        expected["tokenizers"][name] = {
            "size": 1 + max(t.get_vocab().values()), "ids": ids,
            "text": [None if x == y else y for x, y in zip(TEXTS, back)]}
    write("expected.json", expected)
    write("steps.json", steps())


main()
