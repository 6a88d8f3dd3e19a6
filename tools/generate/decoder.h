/* SPDX-License-Identifier: Apache-2.0
 *
 * A decoder: a network from the tokens of a text to the logits of what comes next. One
 * with states remembers what it was fed; any other is given the whole text every time.
 */
#ifndef TOOLS_GENERATE_DECODER_H
#define TOOLS_GENERATE_DECODER_H

#include "engine/context/context.h"

struct decoder;
/* logits: the name of an output; NULL: the only one. EINVAL tells why the network is no
 * decoder; before it is planned decoder_look does, which gives the vocabulary that is
 * told below. The engine and the handle must outlive a decoder. */
int decoder_look(int64_t *vocabulary, const strata_network *net, const char *logits,
                 strata_error *err);
int decoder_open(struct decoder **out, const strata_engine *e, strata_handle *handle,
                 const char *logits, strata_error *err);
void decoder_close(struct decoder *d);

int64_t decoder_vocabulary(const struct decoder *d); /* logits of a place */
/* Tokens that it can still be fed. */
int64_t decoder_room(const struct decoder *d);
/* n >= 1 tokens more of the text, in as few runs as the network's sizes allow. EOVERFLOW:
 * there is no room; nothing was fed then. */
int decoder_feed(struct decoder *d, const int32_t *ids, size_t n, strata_error *err);
/* Of what comes after the last token fed; the decoder's, until the next call. */
const float *decoder_logits(const struct decoder *d);

#endif /* TOOLS_GENERATE_DECODER_H */
