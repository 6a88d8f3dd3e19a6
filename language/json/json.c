/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of a JSON text by where they stand in it. A value is passed over by its brackets
 * and strings alone; whoever uses it reads it whole.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "language/json/json.h"

#include <inttypes.h>
#include <string.h>

#include "core/text.h"
#include "io/printable.h"

#define TREE_BYTES (2u << 20)

static size_t skip_space(const struct json_source *j, size_t at)
{
    while (at < j->size && j->text[at] && strchr(" \t\r\n", j->text[at]))
        at++;
    return at;
}

static int unexpected(const struct json_source *j, size_t at, const char *place,
                      const char *needed, strata_error *err)
{
    char shown[PRINTABLE_SIZE];
    const char *colon = *place ? ": " : "";
    if (at >= j->size)
        return error_set(err, STRATA_EPARSE,
                         "byte %zu: %s%sthe text ends where %s is needed", at, place,
                         colon, needed);
    const size_t left = j->size - at;
    return error_set(err, STRATA_EPARSE, "byte %zu: %s%sfound '%s' where %s is needed",
                     at, place, colon,
                     printable(shown, j->text + at, left < 16 ? left : 16), needed);
}

/* Behind the string that begins at `at`, or the end of the text. */
static size_t skip_string(const struct json_source *j, size_t at)
{
    for (at++; at < j->size && j->text[at] != '"'; at++)
        at += j->text[at] == '\\';
    return at < j->size ? at + 1 : j->size;
}

static size_t skip_word(const struct json_source *j, size_t at)
{
    while (at < j->size && j->text[at] && !strchr(" \t\r\n,]}", j->text[at]))
        at++;
    return at;
}

static int skip_value(const struct json_source *j, size_t at, const char *place,
                      struct json_span *out, strata_error *err)
{
    size_t depth = 0;
    at = skip_space(j, at);
    out->begin = at;
    while (at < j->size) {
        const char c = j->text[at];
        const bool opens = c == '[' || c == '{';
        if (c == '"')
            at = skip_string(j, at);
        else if (depth == 0 && !opens)
            at = skip_word(j, at);
        else
            at++;
        depth += opens;
        depth -= depth > 0 && (c == ']' || c == '}');
        if (depth == 0)
            break;
    }
    out->end = at;
    return depth > 0 || at == out->begin ? unexpected(j, at, place, "a value", err)
                                         : STRATA_OK;
}

int json_walk(struct json_walk *w, const struct json_source *j, struct json_span value,
              char open, const char *place, strata_error *err)
{
    *w = (struct json_walk){j, place, value.begin, 0, open == '[' ? ']' : '}'};
    if (value.begin == value.end || j->text[value.begin] != open)
        return unexpected(j, value.begin, place, open == '[' ? "an array" : "an object",
                          err);
    w->at++;
    return STRATA_OK;
}

static int next_key(struct json_walk *w, struct token_text *key, strata_error *err)
{
    struct json_span name = {w->at, w->at};
    if (w->at >= w->j->size || w->j->text[w->at] != '"')
        return unexpected(w->j, w->at, w->place, "a name in quotes", err);
    name.end = skip_string(w->j, w->at);
    int status = json_read_text(w->j, name, w->place, key, err);
    if (status != STRATA_OK)
        return status;
    w->at = skip_space(w->j, name.end);
    if (w->at >= w->j->size || w->j->text[w->at] != ':')
        return unexpected(w->j, w->at, w->place, "':'", err);
    w->at++;
    return STRATA_OK;
}

int json_next(struct json_walk *w, struct token_text *key, struct json_span *value,
              bool *more, strata_error *err)
{
    const struct json_source *j = w->j;
    int status = STRATA_OK;
    w->at = skip_space(j, w->at);
    *more = !(w->at < j->size && j->text[w->at] == w->close);
    if (!*more) {
        w->at++;
        return STRATA_OK;
    }
    if (w->n > 0) {
        if (w->at >= j->size || j->text[w->at] != ',')
            return unexpected(j, w->at, w->place,
                              w->close == ']' ? "',' or ']'" : "',' or '}'", err);
        w->at = skip_space(j, w->at + 1);
    }
    if (w->close == '}')
        status = next_key(w, key, err);
    if (status == STRATA_OK)
        status = skip_value(j, w->at, w->place, value, err);
    w->at = value->end;
    w->n++;
    return status;
}

static int put_member(struct json_member *members, size_t n, const struct token_text *key,
                      struct json_span value, const char *place, strata_error *err)
{
    char shown[PRINTABLE_SIZE];
    const char *dot = *place ? "." : "";
    printable(shown, key->bytes, key->n);
    for (size_t i = 0; i < n; i++) {
        if (strlen(members[i].key) != key->n ||
            memcmp(members[i].key, key->bytes, key->n) != 0)
            continue;
        if (members[i].value.end > 0)
            return error_set(err, STRATA_EPARSE, "byte %zu: %s%s%s comes twice",
                             value.begin, place, dot, shown);
        members[i].value = value;
        return STRATA_OK;
    }
    error_set(err, STRATA_EUNSUPPORTED, "byte %zu: %s%s%s is not known; supported are",
              value.begin, place, dot, shown);
    for (size_t i = 0; i < n; i++)
        error_append(err, "%s %s", i ? "," : "", members[i].key);
    return STRATA_EUNSUPPORTED;
}

/* Nothing but spaces may follow. */
static int finish(const struct json_source *j, size_t at, strata_error *err)
{
    at = skip_space(j, at);
    return at < j->size ? unexpected(j, at, "", "the end", err) : STRATA_OK;
}

int json_read_members(const struct json_source *j, size_t at, const char *place,
                      struct json_member *members, size_t n, strata_error *err)
{
    struct token_text key = {0};
    struct json_walk w;
    struct json_span value = {skip_space(j, at), j->size};
    bool more = true;
    int status = json_walk(&w, j, value, '{', place, err);
    while (status == STRATA_OK && more) {
        key.n = 0;
        status = json_next(&w, &key, &value, &more, err);
        if (status == STRATA_OK && more)
            status = put_member(members, n, &key, value, place, err);
    }
    if (status == STRATA_OK && !*place)
        status = finish(j, w.at, err);
    bytes_free(&key);
    return status;
}

/* The value by jansson, which reads the text of it and no more. */
static int load(json_t **out, const struct json_source *j, struct json_span value,
                const char *place, strata_error *err)
{
    char shown[PRINTABLE_SIZE];
    json_error_t e;
    *out = json_loadb(j->text + value.begin, value.end - value.begin,
                      JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);
    if (*out)
        return STRATA_OK;
    /* jansson leaves the text empty where its own allocations fail. */
    if (json_error_code(&e) == json_error_out_of_memory || e.text[0] == '\0')
        return error_no_memory(err, value.end - value.begin, place);
    return error_set(err, STRATA_EPARSE, "byte %zu: %s is not valid JSON: %s",
                     value.begin + (size_t)(e.position > 0 ? e.position : 0), place,
                     printable(shown, e.text, strlen(e.text)));
}

/* Whether a string stands for itself: no escapes, no controls, whole characters. */
static bool is_plain(const char *text, size_t n)
{
    for (size_t at = 0, size; at < n; at += size) {
        const unsigned char c = (unsigned char)text[at];
        size = text_character_size((const unsigned char *)text + at, n - at);
        if (c < ' ' || c == '\\' || c == '"' || size == 0)
            return false;
    }
    return true;
}

int json_read_text(const struct json_source *j, struct json_span value, const char *place,
                   struct token_text *out, strata_error *err)
{
    const char *text = j->text + value.begin;
    const size_t n = value.end - value.begin;
    json_t *string;
    out->n = 0;
    if (n < 2 || text[0] != '"' || text[n - 1] != '"')
        return unexpected(j, value.begin, place, "a string", err);
    if (n > TREE_BYTES)
        return error_set(err, STRATA_EPARSE,
                         "byte %zu: %s: a string of %zu bytes; at most %u are allowed",
                         value.begin, place, n, TREE_BYTES);
    if (is_plain(text + 1, n - 2))
        return bytes_put(out, text + 1, n - 2, err);
    int status = load(&string, j, value, place, err);
    if (status != STRATA_OK)
        return status;
    status = bytes_put(out, json_string_value(string), json_string_length(string), err);
    json_decref(string);
    return status;
}

int json_read_integer(const struct json_source *j, struct json_span value,
                      const char *place, int64_t *out, strata_error *err)
{
    const size_t n = value.end - value.begin;
    int64_t x = 0;
    bool digits = n > 0 && n <= 18;
    for (size_t i = value.begin; digits && i < value.end; i++) {
        digits = j->text[i] >= '0' && j->text[i] <= '9';
        x = x * 10 + (j->text[i] - '0');
    }
    if (!digits)
        return unexpected(j, value.begin, place, "an integer not below 0", err);
    *out = x;
    return STRATA_OK;
}

int json_read_tree(json_t **out, const struct json_source *j, struct json_span value,
                   const char *place, strata_error *err)
{
    *out = NULL;
    if (value.begin == value.end)
        return STRATA_OK;
    if (value.end - value.begin > TREE_BYTES)
        return error_set(err, STRATA_EPARSE,
                         "byte %zu: %s has %zu bytes; at most %u are allowed",
                         value.begin, place, value.end - value.begin, TREE_BYTES);
    int status = load(out, j, value, place, err);
    if (json_is_null(*out)) {
        json_decref(*out);
        *out = NULL;
    }
    return status;
}
