/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of `strata generate`.
 */
#include "tools/generate/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "io/file.h"

/* ---- the tokenizer ------------------------------------------------------------------
 */

/* FOLDER/NAME of FOLDER/NAME.ini, and FOLDER/. */
static char *beside(const char *network, bool named, const char *file)
{
    const char *slash = strrchr(network, '/'), *name = slash ? slash + 1 : network;
    const char *dot = strrchr(name, '.');
    const size_t size = named ? (size_t)((dot ? dot : name + strlen(name)) - network)
                              : (size_t)(name - network);
    return text_print("%.*s%s", (int)size, network, file);
}

/* *path is NULL where there is none. */
static int find_tokenizer(char **path, const char *network, strata_error *err)
{
    static const struct {
        bool named;
        const char *file;
    } places[] = {{true, ".tokenizer.json"},
                  {true, ".tokenizer.bin"},
                  {false, "tokenizer.json"},
                  {false, "tokenizer.bin"}};
    *path = NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
        char *at = beside(network, places[i].named, places[i].file);
        if (!at)
            return error_no_memory(err, 0, "a path");
        if (access(at, F_OK) == 0) {
            *path = at;
            return STRATA_OK;
        }
        free(at);
    }
    return STRATA_OK;
}

int text_open(struct text *t, const char *tokenizer, const char *network,
              strata_error *err)
{
    char *found = NULL;
    int status = tokenizer ? STRATA_OK : find_tokenizer(&found, network, err);
    if (status == STRATA_OK && (tokenizer || found))
        status = tokenizer_open(&t->tokenizer, tokenizer ? tokenizer : found, err);
    if (status == STRATA_OK && t->tokenizer)
        status = token_stream_open(&t->stream, t->tokenizer, err);
    if (status == STRATA_OK && found)
        log_line(STRATA_LOG_INFO, "tokenizer: %s", found);
    free(found);
    return tool_file_status(status, err);
}

void text_close(struct text *t)
{
    token_stream_free(t->stream);
    tokenizer_free(t->tokenizer);
    free(t->tokens.ids);
    free(t->made.bytes);
}

/* ---- the prompt ---------------------------------------------------------------------
 */

static int append(struct tokens *t, int32_t id, strata_error *err)
{
    if (t->n == t->room) {
        const size_t room = t->room ? 2 * t->room : 64;
        int32_t *ids = realloc(t->ids, room * sizeof *ids);
        if (!ids)
            return error_no_memory(err, room * sizeof *ids, "tokens");
        t->ids = ids;
        t->room = room;
    }
    t->ids[t->n++] = id;
    return STRATA_OK;
}

int text_prompt(struct text *t, const char *text, size_t size, strata_error *err)
{
    if (!t->tokenizer)
        return error_set(err, STRATA_EINVAL,
                         "a text needs a tokenizer: add --tokenizer FILE, lay "
                         "tokenizer.json or tokenizer.bin beside the network, or give "
                         "the prompt as --ids 1,2,3");
    const int32_t begin = tokenizer_begin(t->tokenizer);
    int status = begin >= 0 ? append(&t->tokens, begin, err) : STRATA_OK;
    if (status == STRATA_OK)
        status = tokenizer_encode(t->tokenizer, text, size, &t->tokens, err);
    t->n_prompt = t->tokens.n;
    if (status == STRATA_OK && t->n_prompt == 0)
        return error_set(err, STRATA_EINVAL,
                         "the prompt is empty, and the tokenizer has no token that texts "
                         "begin with");
    return status;
}

int text_numbers(struct text *t, const char *numbers, strata_error *err)
{
    for (const char *at = numbers;; at++) {
        char *end;
        errno = 0;
        const long long id = strtoll(at, &end, 10);
        if (end == at || errno || id < 0 || id > INT32_MAX || (*end && *end != ','))
            return error_set(err, STRATA_EINVAL,
                             "--ids '%s': numbers of tokens are needed, as 1,2,3",
                             numbers);
        const int status = append(&t->tokens, (int32_t)id, err);
        if (status != STRATA_OK)
            return status;
        t->n_prompt = t->tokens.n;
        at = end;
        if (!*end)
            return STRATA_OK;
    }
}

/* ---- what is made -------------------------------------------------------------------
 */

static int put_number(struct text *t, int32_t id, strata_error *err)
{
    enum { DIGITS = 16 };
    struct token_text *made = &t->made;
    if (made->room < made->n + DIGITS) {
        const size_t room = 2 * made->room + DIGITS;
        char *bytes = realloc(made->bytes, room);
        if (!bytes)
            return error_no_memory(err, room, "a text");
        made->bytes = bytes;
        made->room = room;
    }
    made->n += (size_t)snprintf(made->bytes + made->n, DIGITS, "%s%d", made->n ? " " : "",
                                (int)id);
    return STRATA_OK;
}

static int put(struct text *t, int32_t id, strata_error *err)
{
    return t->stream ? token_stream_put(t->stream, id, &t->made, err)
                     : put_number(t, id, err);
}

static void show(struct text *t)
{
    if (t->silent || t->made.n == t->shown)
        return;
    for (size_t n; t->shown < t->made.n; t->shown += n) { /* 0 is for no terminal */
        n = strlen(t->made.bytes + t->shown) + 1;
        tool_print("%s%s", t->made.bytes + t->shown,
                   t->shown + n <= t->made.n ? "?" : "");
    }
    fflush(stdout);
    t->shown = t->made.n;
}

int text_begin(struct text *t, bool echo, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < t->n_prompt && status == STRATA_OK; i++)
        status = put(t, t->tokens.ids[i], err);
    if (!echo && t->made.bytes) {
        t->made.n = 0;
        t->made.bytes[0] = '\0';
    }
    show(t);
    return status;
}

bool text_is_over(const struct text *t, int32_t token)
{
    for (size_t i = 0; i < t->n_ends; i++)
        if (t->ends[i] == token)
            return true;
    return t->tokenizer && !t->goes_on && tokenizer_ends(t->tokenizer, token);
}

int text_add(struct text *t, int32_t token, strata_error *err)
{
    int status = append(&t->tokens, token, err);
    if (status == STRATA_OK)
        status = put(t, token, err);
    show(t);
    return status;
}

int text_end(struct text *t, strata_error *err)
{
    const int status = t->stream ? token_stream_end(t->stream, &t->made, err) : STRATA_OK;
    show(t);
    if (!t->silent)
        tool_print("\n");
    return status;
}
