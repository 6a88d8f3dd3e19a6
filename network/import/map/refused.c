/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that cannot be layers, and why: a tensor of static shape has no place for
 * what they give.
 */
#include "network/import/map.h"

#include "core/alloc.h"

#define MICROSOFT "com.microsoft"
#define TREES "ai.onnx.ml"
#define TRAINING "ai.onnx.preview.training"

static const char dependent[] =
    "its output's size depends on values; engines have static shapes";
static const char strings[] = "it works on strings; Strata has none";
static const char draws[] = "it draws random numbers; a plan gives the same ones each "
                            "time";
static const char training[] = "it is a step of training; Strata runs trained networks";
static const char images[] = "it decodes image files; strata run reads images itself";
static const char experts[] = "experts are chosen by values; every layer runs for all";
static const char paged[] = "caches in pages have no place in a state";
static const char trees[] = "it is classical machine learning; Strata runs networks";

static void refuse(struct mapping *m)
{
    map_refuse(m, "%s", m->rule->note);
}

#define ROW(op_, why)                                                                    \
    {                                                                                    \
        .op = op_, .finish = refuse, .note = why                                         \
    }
#define OF(domain_, op_, why)                                                            \
    {                                                                                    \
        .op = op_, .finish = refuse, .note = why, .domain = domain_                      \
    }

static const struct map_rule rules[] = {
    ROW("Unique", dependent),
    ROW("StringConcat", strings),
    ROW("StringNormalizer", strings),
    ROW("StringSplit", strings),
    ROW("RegexFullMatch", strings),
    ROW("TfIdfVectorizer", strings),
    ROW("Bernoulli", draws),
    ROW("Multinomial", draws),
    ROW("RandomNormal", draws),
    ROW("RandomNormalLike", draws),
    ROW("RandomUniform", draws),
    ROW("RandomUniformLike", draws),
    ROW("ImageDecoder", images),
    OF(TRAINING, "Adagrad", training),
    OF(TRAINING, "Adam", training),
    OF(TRAINING, "Gradient", training),
    OF(TRAINING, "Momentum", training),
    OF(MICROSOFT, "MoE", experts),
    OF(MICROSOFT, "QMoE", experts),
    OF(MICROSOFT, "PagedAttention", paged),
    OF(TREES, "ArrayFeatureExtractor", trees),
    OF(TREES, "Binarizer", trees),
    OF(TREES, "CastMap", trees),
    OF(TREES, "CategoryMapper", trees),
    OF(TREES, "DictVectorizer", trees),
    OF(TREES, "FeatureVectorizer", trees),
    OF(TREES, "Imputer", trees),
    OF(TREES, "LabelEncoder", trees),
    OF(TREES, "LinearClassifier", trees),
    OF(TREES, "LinearRegressor", trees),
    OF(TREES, "Normalizer", trees),
    OF(TREES, "OneHotEncoder", trees),
    OF(TREES, "Scaler", trees),
    OF(TREES, "SVMClassifier", trees),
    OF(TREES, "SVMRegressor", trees),
    OF(TREES, "TreeEnsemble", trees),
    OF(TREES, "TreeEnsembleClassifier", trees),
    OF(TREES, "TreeEnsembleRegressor", trees),
    OF(TREES, "ZipMap", trees),
};

const struct map_table map_refused = {"Not taken", rules, ARRAY_LENGTH(rules)};
