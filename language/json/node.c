/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of JSON objects, asked for by kind.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "language/json/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "io/printable.h"

struct node node_item(const struct node *n, size_t i)
{
    struct node item = {.value = json_array_get(n->value, i)};
    if (json_is_null(item.value))
        item.value = NULL;
    snprintf(item.place, sizeof item.place, "%.*s[%zu]", PLACE_SIZE - 24, n->place, i);
    return item;
}

struct node node_member(const struct node *n, const char *key)
{
    struct node member = {.value = json_object_get(n->value, key)};
    char shown[PRINTABLE_SIZE];
    if (json_is_null(member.value))
        member.value = NULL;
    snprintf(member.place, sizeof member.place, "%.*s.%.40s", PLACE_SIZE - 48, n->place,
             printable(shown, key, strlen(key)));
    return member;
}

int node_unexpected(const struct node *n, const char *needed, strata_error *err)
{
    char shown[PRINTABLE_SIZE], text[64];
    if (!n->value)
        return error_set(err, STRATA_EPARSE, "%s: missing where %s is needed", n->place,
                         needed);
    size_t size = json_dumpb(n->value, text, sizeof text,
                             JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
    if (size == 0 || size > sizeof text)
        size = (size_t)snprintf(text, sizeof text, "%s",
                                json_is_object(n->value)  ? "{...}"
                                : json_is_array(n->value) ? "[...]"
                                                          : "a long text");
    return error_set(err, STRATA_EPARSE, "%s: found %s where %s is needed", n->place,
                     printable(shown, text, size), needed);
}

static bool among(const char *const *keys, const char *key)
{
    for (; *keys; keys++)
        if (strcmp(*keys, key) == 0)
            return true;
    return strcmp(key, "type") == 0;
}

int node_check(const struct node *n, const char *const *keys, strata_error *err)
{
    const char *key;
    json_t *value;
    if (!json_is_object(n->value))
        return node_unexpected(n, "an object", err);
    json_object_foreach(n->value, key, value)
    {
        if (among(keys, key))
            continue;
        const struct node unknown = node_member(n, key);
        error_set(err, STRATA_EUNSUPPORTED, "%s is not known; supported are type",
                  unknown.place);
        for (; *keys; keys++)
            error_append(err, ", %s", *keys);
        return STRATA_EUNSUPPORTED;
    }
    return STRATA_OK;
}

int node_string(const struct node *n, const char *key, const char **out, size_t *size,
                strata_error *err)
{
    const struct node member = node_member(n, key);
    if (!json_is_string(member.value))
        return node_unexpected(&member, "a text", err);
    *out = json_string_value(member.value);
    *size = json_string_length(member.value);
    return STRATA_OK;
}

int node_flag(const struct node *n, const char *key, bool absent, bool *out,
              strata_error *err)
{
    const struct node member = node_member(n, key);
    if (member.value && !json_is_boolean(member.value))
        return node_unexpected(&member, "true or false", err);
    *out = member.value ? json_is_true(member.value) : absent;
    return STRATA_OK;
}

int node_count(const struct node *n, const char *key, int64_t most, int64_t *out,
               strata_error *err)
{
    char needed[64];
    const struct node member = node_member(n, key);
    *out = json_integer_value(member.value);
    if (json_is_integer(member.value) && *out >= 0 && *out <= most)
        return STRATA_OK;
    snprintf(needed, sizeof needed, "an integer of 0 to %" PRId64, most);
    return node_unexpected(&member, needed, err);
}

int node_character(const struct node *n, const char *key, const char **out, size_t *size,
                   strata_error *err)
{
    uint32_t code;
    int status = node_string(n, key, out, size, err);
    if (status != STRATA_OK)
        return status;
    if (*size > 0 && utf8_next(*out, *size, &code) == *size)
        return STRATA_OK;
    const struct node member = node_member(n, key);
    return node_unexpected(&member, "one character", err);
}

int node_list(const struct node *n, const char *key, size_t most, struct node *out,
              size_t *count, strata_error *err)
{
    char needed[64];
    *out = node_member(n, key);
    *count = json_array_size(out->value);
    if (json_is_array(out->value) && *count <= most)
        return STRATA_OK;
    snprintf(needed, sizeof needed, "an array of at most %zu", most);
    return node_unexpected(out, needed, err);
}

int node_type(const struct node *n, const char *const *names, size_t n_names, size_t *out,
              strata_error *err)
{
    char shown[PRINTABLE_SIZE];
    const char *type;
    size_t size;
    if (!json_is_object(n->value))
        return node_unexpected(n, "an object", err);
    int status = node_string(n, "type", &type, &size, err);
    for (*out = 0; status == STRATA_OK && *out < n_names; ++*out)
        if (strcmp(names[*out], type) == 0)
            return STRATA_OK;
    if (status != STRATA_OK)
        return status;
    error_set(err, STRATA_EUNSUPPORTED, "%s: type '%s' is not supported; supported are",
              n->place, printable(shown, type, size));
    for (size_t i = 0; i < n_names; i++)
        error_append(err, "%s %s", i ? "," : "", names[i]);
    return STRATA_EUNSUPPORTED;
}

int node_steps(const struct node *sequence, const char *member, int depth,
               node_visit *visit, void *to, strata_error *err)
{
    struct node list;
    size_t n;
    if (depth == MAX_NESTED)
        return error_set(err, STRATA_EUNSUPPORTED, "%s: more than %d sequences nested",
                         sequence->place, MAX_NESTED);
    int status = node_list(sequence, member, MAX_STEPS, &list, &n, err);
    for (size_t i = 0; i < n && status == STRATA_OK; i++) {
        const struct node step = node_item(&list, i);
        status = visit(to, &step, depth + 1, err);
    }
    return status;
}
