/* SPDX-License-Identifier: Apache-2.0
 *
 * What the models share.
 */
#include "language/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int model_encode(const struct model *m, const char *word, size_t n, struct scratch *s,
                 struct tokens *out, strata_error *err)
{
    if (n == 0)
        return STRATA_OK;
    if (n > INT32_MAX)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "a word of %zu bytes; at most %d can be encoded at once", n,
                         INT32_MAX);
    return m->kind == MODEL_WORDPIECE ? wordpiece_encode(m, word, n, out, err)
                                      : bpe_encode(m, word, n, s, out, err);
}

void model_find_bytes(struct model *m)
{
    char text[8];
    for (unsigned i = 0; i < 256; i++) {
        const int n = snprintf(text, sizeof text, "<0x%02X>", i);
        m->byte_ids[i] = vocabulary_find(&m->words, text, (size_t)n);
    }
}

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

bool byte_token(const char *text, size_t n, unsigned char *byte)
{
    if (n != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return false;
    const int high = digit(text[3]), low = digit(text[4]);
    *byte = (unsigned char)(high << 4 | low);
    return high >= 0 && low >= 0;
}

void model_free(struct model *m)
{
    vocabulary_free(&m->words);
    bytes_free(&m->prefix);
    bytes_free(&m->suffix);
    free(m->merges.slots);
}

void model_scratch_free(struct scratch *s)
{
    free(s->symbols);
    free(s->heap);
    bytes_free(&s->text);
}
