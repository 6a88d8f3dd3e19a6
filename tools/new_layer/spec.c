/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of strata new-layer that have a grammar:
 *   --attr NAME:TYPE[=DEFAULT][:MIN..MAX] or NAME:enum[=DEFAULT]:A|B|C
 *   --weight NAME[:optional]
 */
#include "tools/new_layer/new_layer.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

static const char *const types[] = {
    [STRATA_I64] = "int",     [STRATA_F64] = "real",      [STRATA_BOOL] = "bool",
    [STRATA_ENUM] = "enum",   [STRATA_STRING] = "string", [STRATA_INTS] = "ints",
    [STRATA_REALS] = "reals",
};

/* No name of a member in C and C++, and the keys of every [layer] section. */
static const char *const taken[] = {
    "auto",      "bool",     "break",    "case",     "catch",   "char",      "class",
    "const",     "continue", "default",  "delete",   "do",      "double",    "else",
    "enum",      "explicit", "export",   "extern",   "false",   "float",     "for",
    "friend",    "goto",     "if",       "inline",   "int",     "long",      "mutable",
    "namespace", "new",      "nullptr",  "operator", "private", "protected", "public",
    "register",  "restrict", "return",   "short",    "signed",  "sizeof",    "static",
    "struct",    "switch",   "template", "this",     "throw",   "true",      "try",
    "typedef",   "typename", "union",    "unsigned", "using",   "virtual",   "void",
    "volatile",  "while",    "type",     "inputs",   "weights", "format",    "impl",
};
/* Weights become variables beside these of the generated code, and constants. */
static const char *const taken_by_code[] = {
    "c", "channels", "i", "k", "p", "pixels", "r", "x", "y", "null",
};

static bool is_among(const char *word, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

/* ---- names ---------------------------------------------------------------------------
 */

int new_layer_name(struct new_layer *l, const char *name, strata_error *err)
{
    const size_t n = strlen(name), good = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                       "abcdefghijklmnopqrstuvwxyz"
                                                       "0123456789");
    if (n == 0 || good < n || !isupper((unsigned char)name[0]))
        return error_set(
            err, STRATA_EINVAL,
            "layer name '%s': a capital, then letters and digits are needed, "
            "as in LeakyReLU",
            name);
    if (n >= NEW_LAYER_WORD)
        return error_set(err, STRATA_EINVAL,
                         "layer name '%s' has %zu letters; at most %d are possible", name,
                         n, NEW_LAYER_WORD - 1);
    l->name = name;
    new_layer_snake(l->file, sizeof l->file, name);
    return STRATA_OK;
}

int new_layer_namespace(struct new_layer *l, const char *ns, strata_error *err)
{
    const size_t n = strlen(ns);
    if (n == 0 || n >= NEW_LAYER_WORD || !islower((unsigned char)ns[0]) ||
        strspn(ns, "abcdefghijklmnopqrstuvwxyz0123456789_.-") < n)
        return error_set(err, STRATA_EINVAL,
                         "namespace '%s': a small letter, then small letters, digits, "
                         "'_', '.' and '-' are needed, as in org.example",
                         ns);
    if (strcmp(ns, "core") == 0)
        return error_set(err, STRATA_EINVAL,
                         "namespace 'core' is that of the built-in layers; use your own, "
                         "as in org.example");
    l->ns = ns;
    return STRATA_OK;
}

static bool is_used(const struct new_layer *l, const char *name)
{
    for (size_t i = 0; i < l->n_attrs; i++)
        if (strcmp(l->attrs[i].name, name) == 0)
            return true;
    for (size_t i = 0; i < l->n_weights; i++)
        if (strcmp(l->weights[i].name, name) == 0)
            return true;
    return false;
}

/* The name that `text` begins with, checked. */
static int take_name(const struct new_layer *l, char *out, const char *text,
                     const char *what, strata_error *err)
{
    const bool is_weight = strcmp(what, "--weight") == 0;
    const size_t n = strcspn(text, ":");
    if (n == 0 || n >= NEW_LAYER_WORD || !islower((unsigned char)text[0]) ||
        strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") < n)
        return error_set(err, STRATA_EINVAL,
                         "%s '%s': its name '%.*s' must be a small letter, then small "
                         "letters, digits and '_', at most %d",
                         what, text, (int)n, text, NEW_LAYER_WORD - 1);
    snprintf(out, NEW_LAYER_WORD, "%.*s", (int)n, text);
    if (is_among(out, taken, ARRAY_LENGTH(taken)) ||
        (is_weight && is_among(out, taken_by_code, ARRAY_LENGTH(taken_by_code))))
        return error_set(err, STRATA_EINVAL,
                         "%s '%s': '%s' has a meaning of its own in C++, in the "
                         "generated code or in a network; take another name",
                         what, text, out);
    if (is_used(l, out))
        return error_set(err, STRATA_EINVAL, "%s '%s': '%s' is given twice", what, text,
                         out);
    return STRATA_OK;
}

/* ---- values --------------------------------------------------------------------------
 */

static bool is_number(const char *text, bool whole)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || strpbrk(text, "xX \t"))
        return false;
    return !whole || (fabs(value) <= 9007199254740992.0 && value == floor(value) &&
                      !strpbrk(text, ".eE"));
}

static bool is_list(const char *text, bool whole)
{
    const char *separator = strchr(text, ',') || !whole ? ", " : "x";
    char word[NEW_LAYER_WORD];
    while (*text) {
        const size_t n = strcspn(text, separator);
        snprintf(word, sizeof word, "%.*s", (int)n, text);
        if (n >= sizeof word || !is_number(word, whole))
            return false;
        text += n;
        text += strspn(text, separator);
    }
    return true;
}

static bool is_choice(const char *choices, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        if (strcspn(at, "|") == length && memcmp(at, word, length) == 0)
            return true;
    return false;
}

static int bad(strata_error *err, const char *text, const char *what, const char *value,
               const char *need)
{
    return error_set(err, STRATA_EINVAL, "--attr '%s': %s '%s': %s", text, what, value,
                     need);
}

/* "0..1" parted at the dots. */
static int take_range(struct new_attr *a, char *range, const char *text,
                      strata_error *err)
{
    char *dots = strstr(range, "..");
    const bool whole = a->type != STRATA_F64 && a->type != STRATA_REALS;
    if (a->type == STRATA_BOOL || a->type == STRATA_STRING)
        return bad(err, text, "range", range, "only numbers have one");
    if (!dots)
        return bad(err, text, "range", range, "write MIN..MAX, as in 0..1");
    *dots = '\0';
    a->min = range;
    a->max = dots + 2;
    if (!is_number(a->min, whole) || !is_number(a->max, whole))
        return bad(err, text, "range", is_number(a->min, whole) ? a->max : a->min,
                   whole ? "a whole number is needed" : "a number is needed");
    if (!(strtod(a->min, NULL) < strtod(a->max, NULL)))
        return bad(err, text, "range", a->min, "the minimum is not below the maximum");
    return STRATA_OK;
}

static int take_choices(struct new_attr *a, const char *choices, const char *text,
                        strata_error *err)
{
    const size_t n = strlen(choices);
    if (n == 0 || choices[0] == '|' || choices[n - 1] == '|' || strstr(choices, "||") ||
        strspn(choices, "abcdefghijklmnopqrstuvwxyz0123456789_|") < n)
        return bad(err, text, "choices", choices,
                   "write small words with '|' between, as in fast|exact");
    a->choices = choices;
    return STRATA_OK;
}

/* One number in [min, max], where there is a range. */
static bool in_range(const struct new_attr *a, const char *number)
{
    const double value = strtod(number, NULL);
    return !a->min || (value >= strtod(a->min, NULL) && value <= strtod(a->max, NULL));
}

static bool list_in_range(const struct new_attr *a)
{
    for (const char *at = a->def; *at; at += strspn(at, ", x")) {
        if (!in_range(a, at))
            return false;
        at += strcspn(at, ", x");
    }
    return true;
}

static int check_default(const struct new_attr *a, const char *text, strata_error *err)
{
    static const char *const need[] = {
        [STRATA_I64] = "a whole number is needed",
        [STRATA_F64] = "a number is needed",
        [STRATA_BOOL] = "yes or no is needed",
        [STRATA_ENUM] = "it is none of the choices",
        [STRATA_STRING] = "quotes, backslashes and control characters cannot be in it",
        [STRATA_INTS] = "write whole numbers as 3x3 or 3, 3",
        [STRATA_REALS] = "write numbers as 0.5, 0.25",
    };
    const char *d = a->def;
    bool right = true;
    if (!d[0])
        return STRATA_OK;
    switch (a->type) {
    case STRATA_I64:
    case STRATA_F64:
        right = is_number(d, a->type == STRATA_I64);
        if (right && !in_range(a, d))
            return bad(err, text, "default", d, "it is outside of the range");
        break;
    case STRATA_BOOL:
        right = strcmp(d, "yes") == 0 || strcmp(d, "no") == 0;
        break;
    case STRATA_ENUM:
        right = is_choice(a->choices, d);
        break;
    case STRATA_STRING:
        for (const char *at = d; *at; at++)
            right = right && !iscntrl((unsigned char)*at) && *at != '"' && *at != '\\';
        break;
    default:
        right = is_list(d, a->type == STRATA_INTS);
        if (right && !list_in_range(a))
            return bad(err, text, "default", d, "an element is outside of the range");
    }
    return right ? STRATA_OK : bad(err, text, "default", d, need[a->type]);
}

/* ---- options -------------------------------------------------------------------------
 */

static int take_type(struct new_attr *a, const char *word, size_t length,
                     const char *text, strata_error *err)
{
    char name[NEW_LAYER_WORD];
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    for (size_t i = 0; i < ARRAY_LENGTH(types); i++)
        if (strcmp(types[i], name) == 0) {
            a->type = (int)i;
            return STRATA_OK;
        }
    const char *near = suggest(name, types, ARRAY_LENGTH(types));
    return error_set(
        err, STRATA_EINVAL,
        "--attr '%s': type '%s' is not known; int, real, bool, enum, string, "
        "ints and reals are%s%s%s",
        text, name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

int new_layer_attr(struct new_layer *l, const char *text, strata_error *err)
{
    if (l->n_attrs == NEW_LAYER_ATTRS)
        return error_set(err, STRATA_EINVAL,
                         "--attr '%s': at most %d attributes are made", text,
                         NEW_LAYER_ATTRS);
    struct new_attr *a = &l->attrs[l->n_attrs];
    *a = (struct new_attr){.def = ""};
    int status = take_name(l, a->name, text, "--attr", err);
    if (status != STRATA_OK)
        return status;
    if (!strchr(text, ':'))
        return error_set(err, STRATA_EINVAL,
                         "--attr '%s' has no type; write NAME:TYPE[=DEFAULT][:MIN..MAX], "
                         "as in slope:real=0.01:0..1",
                         text);
    if (!(a->text = duplicate(text, err)))
        return STRATA_ENOMEM;
    l->n_attrs++; /* from here on new_layer_free has it */
    char *type = strchr(a->text, ':') + 1;
    char *rest = type + strcspn(type, "=:");
    status = take_type(a, type, (size_t)(rest - type), text, err);
    if (status == STRATA_OK && *rest == '=') {
        a->def = rest + 1;
        rest += a->type == STRATA_STRING ? strlen(rest) : strcspn(rest, ":");
    }
    const bool more = *rest == ':';
    *rest = '\0';
    if (status == STRATA_OK && a->type == STRATA_ENUM)
        status = take_choices(a, more ? rest + 1 : "", text, err);
    else if (status == STRATA_OK && more)
        status = take_range(a, rest + 1, text, err);
    return status == STRATA_OK ? check_default(a, text, err) : status;
}

int new_layer_weight(struct new_layer *l, const char *text, strata_error *err)
{
    if (l->n_weights == NEW_LAYER_WEIGHTS)
        return error_set(err, STRATA_EINVAL, "--weight '%s': at most %d weights are made",
                         text, NEW_LAYER_WEIGHTS);
    struct new_weight *w = &l->weights[l->n_weights];
    int status = take_name(l, w->name, text, "--weight", err);
    if (status != STRATA_OK)
        return status;
    const char *rest = text + strlen(w->name);
    if (*rest && strcmp(rest, ":optional") != 0)
        return error_set(err, STRATA_EINVAL,
                         "--weight '%s': write NAME, or NAME:optional", text);
    w->optional = *rest != '\0';
    l->n_weights++;
    return STRATA_OK;
}

void new_layer_free(struct new_layer *l)
{
    for (size_t i = 0; i < l->n_attrs; i++)
        free(l->attrs[i].text);
}
