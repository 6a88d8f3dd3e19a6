/* SPDX-License-Identifier: Apache-2.0
 *
 * [input NAME]: a tensor's shape and element type, its binding, and how an image becomes
 * it. [state NAME], an input of a run that an earlier run made.
 */
#include "network/private.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"

/* One value for all channels, or one for each. */
static void read_channels(struct config *c, struct config_section *s, const char *key,
                          int64_t channels, bool divisor, double out[4])
{
    const struct config_pair *p = config_get(s, key);
    double values[4];
    size_t n;
    if (!p || !config_reals(c, p, values, 4, &n))
        return;
    if (n != 1 && (int64_t)n != channels) {
        config_error(c, p->value_place,
                     "%zu values for %lld channels; give one, or one for each", n,
                     (long long)channels);
        return;
    }
    for (size_t i = 0; i < 4; i++) {
        out[i] = values[n == 1 ? 0 : i < n ? i : n - 1];
        if (!isfinite(out[i]) || (divisor && out[i] == 0)) {
            config_error(c, p->value_place, "%g cannot be a value of %s", out[i], key);
            return;
        }
    }
}

static void read_transform(struct config *c, struct config_section *s,
                           const struct network_tensor *t, struct image_transform *out)
{
    int64_t channels = t->rank > 1 ? t->dims[1] : 1;
    const struct config_pair *resize = config_get(s, "resize");
    const struct config_pair *order = config_get(s, "channels");
    const struct config_pair *scale = config_get(s, "scale");
    const struct config_pair *fill = config_get(s, "fill");
    const struct config_pair *antialias = config_get(s, "antialias");
    int choice;
    *out = image_identity;
    out->channels = channels == 1 ? IMAGE_GRAY : IMAGE_RGB;
    if (order && config_choice(c, order, "rgb|bgr|gray", &choice)) {
        int64_t needed = choice == IMAGE_GRAY ? 1 : 3;
        out->channels = (enum image_channels)choice;
        if (t->rank && (t->rank != 4 || channels != needed))
            config_error(
                c, order->value_place,
                "%s needs a shape of 4 dims with %lld channel%s; %s has %d dims, "
                "%lld channels",
                order->value, (long long)needed, needed == 1 ? "" : "s", s->name, t->rank,
                (long long)channels);
    }
    if (resize && config_choice(c, resize, "stretch|crop|letterbox|exact", &choice))
        out->resize = (enum image_resize)choice;
    if (antialias)
        config_bool(c, antialias, &out->antialias);
    if (scale)
        config_real(c, scale, -1e30, 1e30, &out->scale);
    if (fill)
        config_real(c, fill, 0, 255, &out->fill);
    read_channels(c, s, "mean", channels, false, out->mean);
    read_channels(c, s, "std", channels, true, out->std);
}

static void read_shape(struct config *c, struct config_section *s,
                       struct network_tensor *t,
                       struct config_part parts[STRATA_MAX_RANK])
{
    const struct config_pair *p = config_require(c, s, "shape");
    size_t rank;
    if (!p ||
        !config_dims(c, p, 0, NETWORK_MAX_DIM, t->dims, STRATA_MAX_RANK, &rank, parts))
        return;
    for (size_t d = 0; d < rank; d++)
        if (parts[d].times != parts[d].over) {
            config_error(c, p->value_place,
                         "an input's dim is a size, and no part of one");
            return;
        }
    if (network_elements(t->dims, (int)rank) < 0)
        config_error(c, p->value_place, "more than 2^40 elements");
    else
        t->rank = (int)rank;
}

/* The tensor's element type; *bound is the dtype of its default binding. */
static void read_dtype(struct config *c, struct config_section *s,
                       struct network_tensor *t, int *bound)
{
    const struct config_pair *p = config_get(s, "dtype");
    char choices[128] = "";
    int dtype = STRATA_FP32;
    for (int i = 0; i < STRATA_DTYPE_COUNT; i++) {
        strcat(choices, i ? "|" : "");
        strcat(choices, strata_dtype_name(i));
    }
    if (p)
        config_choice(c, p, choices, &dtype);
    *bound = dtype;
    t->exact = !dtype_is_free(dtype);
    t->dtype = t->exact ? dtype : STRATA_FP32;
}

static void read_binding(struct config *c, struct config_section *s,
                         const struct network_tensor *t, struct format *out)
{
    const struct config_pair *p = config_get(s, "format");
    strata_error why = {0};
    strata_desc desc;
    struct format f;
    if (!p || p->invalid)
        return;
    if (!network_format(c, p, &(struct config_item){p->value, 0}, &f))
        return;
    if (t->rank && format_desc(&desc, f, t->dims, t->rank, &why) != STRATA_OK)
        config_failed(c, p->value_place, &why);
    else if (t->dtype != STRATA_FP32 && !dtype_exact(f.dtype, t->dtype))
        config_error(c, p->value_place, "%s holds values that dtype %s does not",
                     p->value, strata_dtype_name(t->dtype));
    else
        *out = f;
}

static void read_pads(struct config *c, struct config_section *s, bool *any)
{
    const struct config_pair *p = config_get(s, "pads");
    int choice;
    if (p && config_choice(c, p, "zero|any", &choice))
        *any = choice == 1;
}

static int add_input(struct loader *l, const char *name, struct network_input **in,
                     struct network_tensor **t)
{
    strata_network *net = l->net;
    size_t capacity = l->inputs_capacity;
    if (grow(&net->inputs, &l->inputs_capacity, net->n_inputs, sizeof *net->inputs,
             l->err) != STRATA_OK ||
        grow(&net->tensors, &capacity, net->n_tensors, sizeof *net->tensors, l->err) !=
            STRATA_OK)
        return STRATA_ENOMEM;
    *in = &net->inputs[net->n_inputs];
    *t = &net->tensors[net->n_tensors];
    (*in)->name = duplicate(name, l->err);
    (*t)->name = duplicate(name, l->err);
    (*in)->tensor = (int)net->n_tensors++;
    (*t)->producer = -1;
    (*t)->port = (int)net->n_inputs++;
    return (*in)->name && (*t)->name ? STRATA_OK : STRATA_ENOMEM;
}

static void name_dims(struct loader *l, struct network_input *in,
                      const struct network_tensor *t,
                      const struct config_part parts[STRATA_MAX_RANK])
{
    for (int d = 0; d < STRATA_MAX_RANK; d++) {
        const bool is = d < t->rank;
        const int first = is ? network_symbol_of(l->net, l->c, parts[d].symbol) : -1,
                  second = is ? network_symbol_of(l->net, l->c, parts[d].plus) : -1;
        const bool sum = is && (parts[d].plus >= 0 || parts[d].more);
        in->symbols[d] = (int8_t)(sum ? -1 : first);
        in->sums[d] = (struct network_sum){(int8_t)(sum ? first : -1), (int8_t)second,
                                           is ? parts[d].more : 0};
    }
    if (l->begun && t->rank > 0 && parts[0].symbol >= 0 && parts[0].plus < 0 &&
        parts[0].more == 0)
        l->begun[parts[0].symbol]++;
}

int network_input(struct loader *l, struct config_section *s)
{
    static const char *const keys[] = {"shape",     "dtype", "format",   "scale",
                                       "mean",      "std",   "channels", "resize",
                                       "antialias", "fill",  "pads"};
    struct network_input *in;
    struct network_tensor *t;
    if (l->net->n_inputs == NETWORK_MAX_INPUTS) {
        config_error(l->c, s->place, "more than %d inputs", NETWORK_MAX_INPUTS);
        return STRATA_OK;
    }
    struct config_part parts[STRATA_MAX_RANK];
    int dtype, status = add_input(l, s->name, &in, &t);
    if (status != STRATA_OK)
        return status;
    read_shape(l->c, s, t, parts);
    name_dims(l, in, t, parts);
    read_dtype(l->c, s, t, &dtype);
    in->format = (struct format){.dtype = dtype, .order = ORDER_LINEAR, .vector = 1};
    read_binding(l->c, s, t, &in->format);
    read_pads(l->c, s, &in->pads_any);
    read_transform(l->c, s, t, &in->transform);
    config_unknown(l->c, s, keys, ARRAY_LENGTH(keys));
    return names_put(&l->node_index, s->name, t->port, l->err);
}

int network_state(struct loader *l, struct config_section *s)
{
    static const char *const keys[] = {"shape", "dtype", "format",
                                       "next",  "value", "room"};
    const struct config_pair *value = config_get(s, "value");
    const struct config_pair *room = config_get(s, "room");
    struct network_state *state;
    struct network_input *in;
    struct network_tensor *t;
    if (names_get(&l->node_index, s->name) >= 0) {
        config_error(l->c, s->place, "'%s' is an input, too; names are given once",
                     s->name);
        return STRATA_OK;
    }
    if (l->net->n_inputs == NETWORK_MAX_INPUTS) {
        config_error(l->c, s->place, "more than %d inputs and states",
                     NETWORK_MAX_INPUTS);
        return STRATA_OK;
    }
    struct config_part parts[STRATA_MAX_RANK];
    int dtype, status = grow(&l->net->states, &l->states_capacity, l->net->n_states,
                             sizeof *l->net->states, l->err);
    if (status == STRATA_OK)
        status = add_input(l, s->name, &in, &t);
    if (status != STRATA_OK)
        return status;
    state = &l->net->states[l->net->n_states++];
    *state = (struct network_state){.input = t->port, .place = s->place};
    read_shape(l->c, s, t, parts);
    name_dims(l, in, t, parts);
    read_dtype(l->c, s, t, &dtype);
    in->format = (struct format){.dtype = dtype, .order = ORDER_LINEAR, .vector = 1};
    read_binding(l->c, s, t, &in->format);
    if (value)
        config_real(l->c, value, -1e30, 1e30, &state->value);
    if (room && t->dtype != STRATA_INT32 && t->dtype != STRATA_INT64)
        config_error(l->c, room->key_place,
                     "room bounds integers; %s is %s: give the state that counts "
                     "positions (dtype = i32) a room",
                     s->name, strata_dtype_name(dtype));
    else if (room)
        config_int(l->c, room, 1, INT32_MAX, &state->room);
    config_require(l->c, s, "next");
    config_unknown(l->c, s, keys, ARRAY_LENGTH(keys));
    return names_put(&l->node_index, s->name, t->port, l->err);
}
