/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that work element by element.
 */
#include "network/import/map.h"

#include <string.h>

#include "core/alloc.h"

/* One operand is what it is. */
static void finish_many(struct mapping *m)
{
    if (m->node->n_in == 1) {
        m->s->type = "Identity";
        m->s->layer = NULL;
        m->s->n_attrs = 0;
    }
}

#define UNARY(op_, name_)                                                                \
    {                                                                                    \
        op_, "Unary", "op=" name_, "x", "", NULL, NULL, NULL                             \
    }
#define BINARY(op_, name_)                                                               \
    {                                                                                    \
        op_, "ElementWise", "op=" name_, "x+", "", finish_many, NULL, NULL               \
    }
#define ACTIVATION(op_, kind_, names_)                                                   \
    {                                                                                    \
        op_, "Activation", "kind=" kind_, "x", names_, NULL, NULL, NULL                  \
    }

static const struct map_rule rules[] = {
    UNARY("Abs", "abs"),
    UNARY("Neg", "neg"),
    UNARY("Exp", "exp"),
    UNARY("Log", "log"),
    UNARY("Sqrt", "sqrt"),
    BINARY("Add", "sum"),
    BINARY("Sub", "sub"),
    BINARY("Mul", "product"),
    BINARY("Div", "div"),
    BINARY("Max", "max"),
    BINARY("Min", "min"),
    ACTIVATION("Relu", "relu", ""),
    ACTIVATION("LeakyRelu", "leaky_relu", "alpha=alpha"),
    ACTIVATION("Sigmoid", "sigmoid", ""),
    ACTIVATION("Tanh", "tanh", ""),
};

const struct map_table map_arithmetic = {"Element by element", rules,
                                         ARRAY_LENGTH(rules)};
