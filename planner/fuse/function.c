/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers that make bytes of bytes, one by one, as one layer: between a Dequantize and a
 * Quantize what computes element by element from one tensor of integers alone, whatever
 * it rounds in between, is a function of 256 values. The chain begins with a layer all of
 * whose inputs a Dequantize makes of that tensor, or with a Quantize that does; each of
 * its layers alone reads the one before, and reads besides what is dequantised of that
 * tensor. It may end with each Quantize: a group ends with the first, a longer one with
 * the last.
 */
#include "planner/fuse/chain.h"
#include "planner/fuse/members.h"
#include "planner/fuse/notes.h"
#include "planner/fuse/program.h"

#include <stdio.h>
#include <string.h>

#include <strata/layers.h>

enum { NODES = PROGRAM_INSTRUCTIONS, OPERANDS = 3 };

static const char how[] = "with integers, by a table";

/* A chain from a node, as far as it was followed. */
struct function {
    const struct network_layer *from[NODES]; /* each Dequantize that its layers read */
    int n_from;
    int nodes[NODES], n;
    int source; /* the integers that all is computed from */
    struct program_writer writer;
};

static bool is_byte(const struct planner *planner, int tensor)
{
    const int dtype = tensor_of(planner, tensor)->dtype;
    return dtype == STRATA_INT8 || dtype == STRATA_UINT8;
}

/* The Dequantize with one scale that makes a tensor of bytes; or NULL. */
static const struct network_layer *dequantised(const struct planner *planner, int tensor)
{
    const int producer = tensor_of(planner, tensor)->producer;
    if (producer < 0)
        return NULL;
    const struct network_layer *d = &planner->network->layers[producer];
    return is_type(d, "core::Dequantize@1") && is_byte(planner, d->inputs[0]) &&
                   !chain_refuse_scale(d, tensor_of(planner, d->inputs[0])->dtype)
               ? d
               : NULL;
}

static void put_scaled(struct program_writer *w, const char *operation,
                       const char *operand, const struct network_layer *q)
{
    program_begin(w, operation);
    program_put(w, " %s %.9g %.9g", operand, (double)chain_value(q, QUANTIZE_SCALE),
                (double)chain_value(q, QUANTIZE_ZERO));
}

/* An operand that the layer before does not make; false: nor is it of the source. */
static bool take_operand(struct function *f, const struct planner *planner, int tensor,
                         struct program_operand *out)
{
    const struct network_layer *d = dequantised(planner, tensor);
    if (!d || d->inputs[0] != f->source || f->n_from == NODES)
        return false;
    f->from[f->n_from++] = d;
    put_scaled(&f->writer, "dequantize", "x0", d);
    snprintf(out->text, sizeof out->text, "r%d", f->writer.results - 1);
    return true;
}

static bool write_scaled(struct function *f, const struct planner *planner,
                         const struct network_layer *q, const struct program_operand *x)
{
    const bool back = is_type(q, "core::Dequantize@1");
    const int tensor = back ? q->inputs[0] : q->outputs[0];
    const int dtype = tensor_of(planner, tensor)->dtype;
    if (!is_byte(planner, tensor) || chain_refuse_scale(q, dtype))
        return false;
    put_scaled(&f->writer,
               back                   ? "dequantize"
               : dtype == STRATA_INT8 ? "quantize_int8"
                                      : "quantize_u8",
               x->text, q);
    return true;
}

static bool is_scaled(const struct network_layer *layer)
{
    return is_type(layer, "core::Dequantize@1") || is_type(layer, "core::Quantize@1");
}

/* Append a node, behind one that makes `before` (-1: the first). */
static bool append(struct function *f, const struct planner *planner, int node,
                   int before)
{
    const struct network_layer *layer = planner->nodes[node].layer;
    const int last = f->writer.results - 1;
    struct program_operand operands[OPERANDS];
    if (f->n == NODES || layer->n_inputs < 1 || layer->n_inputs > OPERANDS ||
        layer->n_outputs != 1 || planner->nodes[node].rewritten ||
        !members_are_alike(planner, layer->outputs[0], f->source) ||
        !(is_scaled(layer) || program_has(planner->network, layer)))
        return false;
    for (int i = 0; i < layer->n_inputs; i++) {
        if (layer->inputs[i] == before)
            snprintf(operands[i].text, sizeof operands[i].text, "r%d", last);
        else if (!take_operand(f, planner, layer->inputs[i], &operands[i]))
            return false;
    }
    if (!is_scaled(layer))
        program_write(&f->writer, layer, operands);
    else if (!write_scaled(f, planner, layer, &operands[0]))
        return false;
    f->nodes[f->n++] = node;
    f->writer.out->output = layer->outputs[0];
    return !f->writer.full && f->writer.results <= PROGRAM_INSTRUCTIONS;
}

/* The last node of the longer group that computes a node and began before it; or -1. */
static int end_of_longer(const struct planner *planner, int node)
{
    int distance = 1;
    for (int h = planner->nodes[node].previous; h >= 0;
         h = planner->nodes[h].previous, distance++) {
        const struct planner_group *longer = planner->nodes[h].longer;
        if (!longer || distance >= longer->members)
            continue;
        for (int left = longer->members - 1 - distance; left > 0; left--)
            node = planner->nodes[node].next;
        return node;
    }
    return -1;
}

/* Plans know members of longer groups by what is left of them alone, so of two that
 * share members the first would be taken to run to the other's end. */
static bool may_be_longer(const struct planner *planner, const struct function *all)
{
    const int end = end_of_longer(planner, all->nodes[0]);
    return end < 0 || end == all->nodes[all->n - 1];
}

/* The node that goes on with a chain, which no other has; or -1. */
static int next_of(const struct planner *planner, const int *reader, int node)
{
    const int next = members_only_reader(planner, reader, node);
    return next >= 0 && (planner->nodes[next].previous < 0 ||
                         planner->nodes[next].previous == node)
               ? next
               : -1;
}

static bool begin(struct function *f, struct made_layer *made,
                  const struct planner *planner, int node)
{
    const struct network_layer *layer = planner->nodes[node].layer;
    const struct network_layer *d =
        layer->n_inputs > 0 ? dequantised(planner, layer->inputs[0]) : NULL;
    if (!d || layer->impl)
        return false;
    *f = (struct function){.source = d->inputs[0], .writer = {.out = made}};
    *made = (struct made_layer){.layer = {.name = layer->name,
                                          .type = planner->network->quantized_pointwise,
                                          .place = layer->place,
                                          .n_inputs = 1,
                                          .n_outputs = 1},
                                .kind = MADE_FUNCTION,
                                .inputs = {f->source}};
    return append(f, planner, node, -1);
}

/* The chain from a node to its first Quantize, or to its last: false where there is none.
 */
static bool find(struct function *out, struct made_layer *made,
                 const struct planner *planner, const int *reader, int node, bool longest)
{
    struct function f;
    struct made_layer m;
    bool found = false;
    for (bool more = begin(&f, &m, planner, node); more && (longest || !found);) {
        const int last = f.nodes[f.n - 1], next = next_of(planner, reader, last);
        if (is_type(planner->nodes[last].layer, "core::Quantize@1")) {
            *out = f;
            *made = m;
            found = true;
        }
        more = next >= 0 &&
               append(&f, planner, next, planner->nodes[last].layer->outputs[0]);
    }
    return found;
}

static int note(struct planner *planner, const struct function *f, strata_error *err)
{
    const struct network_layer *layers = planner->network->layers;
    const int node = f->nodes[0];
    const char *name = planner->nodes[node].layer->name;
    int status = STRATA_OK;
    for (int i = 0; i < f->n_from && status == STRATA_OK; i++)
        status = notes_add(&planner->fusions[f->from[i] - layers], true, node, err,
                           "%s: computed with integers", name);
    for (int i = 1; i < f->n && status == STRATA_OK; i++)
        status = notes_add(&planner->fusions[f->nodes[i]], true, node, err,
                           "%s: computed with integers", name);
    return status;
}

int function_add(struct planner *planner, const int *reader, int node, bool *added,
                 strata_error *err)
{
    struct function f, all;
    struct made_layer made, longer;
    *added = false;
    if (!planner_has_impl(planner, planner->network->quantized_pointwise) ||
        planner->nodes[node].group || !find(&f, &made, planner, reader, node, false) ||
        !find(&all, &longer, planner, reader, node, true))
        return STRATA_OK;
    *added = true;
    if (!may_be_longer(planner, &all))
        all = f;
    members_link(planner, all.nodes, all.n);
    int status = planner_add_group(planner, node, &made, f.n, how, err);
    if (status == STRATA_OK)
        planner->nodes[node].group->instead = true;
    if (status == STRATA_OK && all.n > f.n) {
        status = planner_add_longer(planner, node, &longer, all.n, how, err);
        if (status == STRATA_OK)
            planner->nodes[node].longer->instead = true;
    }
    return status == STRATA_OK ? note(planner, &all, err) : status;
}
