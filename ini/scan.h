/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a value and the numbers in them, for value.c, list.c and symbols.c only.
 */
#ifndef INI_SCAN_H
#define INI_SCAN_H

#include "ini/private.h"

/* A part of a value. */
struct span {
    const char *text;
    size_t n;
};

struct span span_whole(const struct config_pair *p);
/* Without the blanks around it. */
struct span span_trim(struct span s);
bool span_is(struct span s, const char *word);
struct config_place span_place(const struct config *c, const struct config_pair *p,
                               struct span s);

/* Bytes of the integer at the start of s, 0 if there is none. *fits says whether it fits
 * into *out. */
size_t scan_int(struct span s, int64_t *out, bool *fits);
/* Bytes of the decimal number at the start of s ("1", "-0.5", "1e-5", ".5"), or 0. */
size_t scan_decimal(struct span s);
/* Value of a scanned number, in any locale. */
double decimal_value(struct span s, bool *ok);

/* A number that is all of s; false after recording why it is none. */
bool span_int(struct config *c, const struct config_pair *p, struct span s, int64_t min,
              int64_t max, int64_t *out);
bool span_real(struct config *c, const struct config_pair *p, struct span s, double min,
               double max, double *out);
/* config_dims of a part of a value. */
bool span_ints(struct config *c, const struct config_pair *p, struct span s, int64_t min,
               int64_t max, int64_t *out, size_t max_n, size_t *n,
               struct config_part *parts);
/* "at least 1 is needed", "1 to 64 is allowed". */
#define RANGE_TEXT 64
void range_text(char out[RANGE_TEXT], int64_t min, int64_t max);

#endif /* INI_SCAN_H */
