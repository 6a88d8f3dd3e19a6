/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers as instructions of a program.
 */
#include "planner/fuse/program.h"
#include "planner/fuse/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <strata/layers.h>

void program_put(struct program_writer *w, const char *format, ...)
{
    const size_t room = sizeof w->out->program - w->used;
    va_list list;
    va_start(list, format);
    int n = vsnprintf(w->out->program + w->used, room, format, list);
    va_end(list);
    w->full |= n < 0 || (size_t)n >= room;
    w->used += w->full ? 0 : (size_t)n;
}

static void put_real(struct program_writer *w, double x)
{
    program_put(w, " %.17g", x);
}

/* Begin an instruction. */
void program_begin(struct program_writer *w, const char *operation)
{
    program_put(w, "%s%s", w->results++ ? ", " : "", operation);
}

static void put_operands(struct program_writer *w, const struct program_operand *operands,
                         int n)
{
    for (int i = 0; i < n; i++)
        program_put(w, " %s", operands[i].text);
}

/* An enum attribute's value, as the layer's own table writes it. */
static void choice_name(char out[32], const struct network_layer *layer,
                        const char *attribute)
{
    const struct registry_layer *type = layer->type;
    out[0] = '\0';
    for (size_t i = 0; i < type->n_attrs; i++) {
        const strata_attr *a = &type->attrs[i];
        const char *at = a->choices;
        int32_t index;
        if (strcmp(a->name, attribute) != 0 || a->type != STRATA_ENUM)
            continue;
        memcpy(&index, (const char *)layer->params + a->offset, sizeof index);
        while (index-- > 0 && at)
            at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL;
        if (at)
            snprintf(out, 32, "%.*s", (int)strcspn(at, "|"), at);
    }
}

static void write_operation(struct program_writer *w, const struct network_layer *layer,
                            const struct program_operand *operands)
{
    char name[32];
    choice_name(name, layer, "op");
    program_begin(w, name);
    put_operands(w, operands, layer->n_inputs);
}

/* Of several inputs, from left to right. */
static void write_elementwise(struct program_writer *w, const struct network_layer *layer,
                              const struct program_operand *operands)
{
    struct program_operand left = operands[0];
    char name[32];
    choice_name(name, layer, "op");
    const bool mean = strcmp(name, "mean") == 0;
    for (int i = 1; i < layer->n_inputs; i++) {
        program_begin(w, mean ? "sum" : name);
        program_put(w, " %s %s", left.text, operands[i].text);
        snprintf(left.text, sizeof left.text, "r%d", w->results - 1);
    }
    if (!mean)
        return;
    program_begin(w, "scale");
    program_put(w, " %s %.17g 0", left.text, 1.0 / layer->n_inputs);
}

static void write_select(struct program_writer *w, const struct network_layer *layer,
                         const struct program_operand *operands)
{
    program_begin(w, "select");
    put_operands(w, operands, layer->n_inputs);
}

static void write_cast(struct program_writer *w, const struct network_layer *layer,
                       const struct program_operand *operands)
{
    char name[32], operation[40];
    choice_name(name, layer, "to");
    snprintf(operation, sizeof operation, "cast_%s", name);
    program_begin(w, operation);
    put_operands(w, operands, 1);
}

static void write_activation(struct program_writer *w, const struct network_layer *layer,
                             const struct program_operand *operands)
{
    const strata_activation *a = layer->params;
    char name[32];
    choice_name(name, layer, "kind");
    program_begin(w, name);
    put_operands(w, operands, 1);
    put_real(w, strata_activation_alpha(a));
    put_real(w, strata_activation_beta(a));
}

static void write_scale(struct program_writer *w, const struct network_layer *layer,
                        const struct program_operand *operands)
{
    const strata_scale *p = layer->params;
    program_begin(w, "scale");
    put_operands(w, operands, 1);
    put_real(w, p->scale);
    put_real(w, p->shift);
}

static const struct rule {
    const char *type;
    void (*write)(struct program_writer *w, const struct network_layer *layer,
                  const struct program_operand *operands);
} rules[] = {
    {"core::Unary@1", write_operation},
    {"core::ElementWise@1", write_elementwise},
    {"core::Compare@1", write_operation},
    {"core::Select@1", write_select},
    {"core::Cast@1", write_cast},
    {"core::Scale@1", write_scale},
    {"core::Activation@1", write_activation},
};

static const struct rule *rule_of(const struct network_layer *layer)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rules); i++)
        if (strcmp(rules[i].type, layer->type->full_name) == 0)
            return &rules[i];
    return NULL;
}

/* Programs compute in FP32, so integers stay outside. */
static bool has_program_dtype(const struct network_tensor *t)
{
    return dtype_is_free(t->dtype) || t->dtype == STRATA_BOOL8;
}

bool program_has(const strata_network *net, const struct network_layer *layer)
{
    const struct rule *rule = rule_of(layer);
    if (!rule || layer->n_outputs != 1 || layer->ports ||
        layer->n_inputs > PLAN_MAX_PORTS)
        return false;
    if (rule->write == write_scale && ((const strata_scale *)layer->params)->power != 1)
        return false; /* programs have affine scales alone */
    for (size_t w = 0; w < layer->type->n_weights; w++)
        if (network_has_weight(layer, w))
            return false;
    for (int i = 0; i < layer->n_inputs; i++)
        if (!has_program_dtype(&net->tensors[layer->inputs[i]]))
            return false;
    return has_program_dtype(&net->tensors[layer->outputs[0]]);
}

void program_write(struct program_writer *w, const struct network_layer *layer,
                   const struct program_operand *operands)
{
    rule_of(layer)->write(w, layer, operands);
}
