# Write ordinal.json: what ordinal's clm and clmm make of the ratings of data/experiment.csv and of ordinal's wine.
#
#     Rscript make_golden_ordinal.R      (in this folder, after simulate_data.R)
suppressPackageStartupMessages({
  library(ordinal)
  library(emmeans)
  library(jsonlite)
})
write.csv(wine[, c("judge", "bottle", "temp", "contact", "rating")], file.path("data", "wine.csv"),
          row.names = FALSE, quote = FALSE, eol = "\n")

read_table <- function(name, factors) {
  frame <- read.csv(file.path("data", paste0(name, ".csv")))
  frame[factors] <- lapply(frame[factors], factor)
  frame
}
tables <- list(wine = read_table("wine", c("judge", "bottle", "temp", "contact")),
               experiment = read_table("experiment", c("subject", "item", "condition", "kind")))
tables$wine$rating <- factor(tables$wine$rating, ordered = TRUE)
tables$experiment$likert <- factor(tables$experiment$likert, ordered = TRUE)
tables$unbalanced <- subset(tables$experiment, kept == 1)

describe_columns <- function(table, ...) {
  names <- c(...)
  lapply(seq_len(nrow(table)), function(row) c(
    list(term = rownames(table)[row]),
    setNames(as.list(unname(table[row, seq_along(names)])), names)
  ))
}

describe_random <- function(fit) do.call(c, lapply(names(VarCorr(fit)), function(group) {
  part <- VarCorr(fit)[[group]]
  sds <- attr(part, "stddev")
  terms <- rownames(part)
  parts <- lapply(seq_along(sds), function(i) list(kind = "sd", group = group, term = terms[i], sd = unname(sds[i])))
  pairs <- which(lower.tri(part), arr.ind = TRUE)
  c(parts, lapply(seq_len(nrow(pairs)), function(row) list(
    kind = "correlation", group = group, term = terms[pairs[row, 2]], other = terms[pairs[row, 1]],
    value = attr(part, "correlation")[pairs[row, 1], pairs[row, 2]])))
}))

# clmm stops at a gradient of 1e-4 of its own; the fits here ask for a smaller one.
tight <- clmm.control(method = "nlminb", rel.tol = 1e-14, x.tol = 1e-12, eval.max = 1e4, iter.max = 1e4,
                      gradTol = 1e-6, maxIter = 200, maxLineIter = 100)
fit_model <- function(formula, data, link, random) {
  if (!random) return(clm(as.formula(formula), data = tables[[data]], link = link))
  clmm(as.formula(formula), tables[[data]], link = link, Hess = TRUE, nAGQ = 1, control = tight)
}

fit_ordinal <- function(name, data, formula, link = "logit") {
  random <- grepl("|", formula, fixed = TRUE)
  fit <- fit_model(formula, data, link, random)
  table <- coef(summary(fit))
  thresholds <- seq_along(fit$alpha)
  list(name = name, data = data, formula = formula, link = link,
       call = sprintf("ordinal::%s(%s, link = \"%s\"%s)", if (random) "clmm" else "clm", formula, link,
                      if (random) ", nAGQ = 1" else ""),
       rows = nobs(fit), loglik = as.numeric(logLik(fit)), parameters = attr(logLik(fit), "df"),
       aic = AIC(fit), thresholds = describe_columns(table[thresholds, , drop = FALSE], "estimate", "se", "z", "p"),
       fixed = describe_columns(table[-thresholds, , drop = FALSE], "estimate", "se", "z", "p"),
       random = if (random) describe_random(fit) else list())
}

# Marginal means on the scale of the latent variable, whose 0 is the mean threshold.
describe_means <- function(data, formula, factor) {
  # emmeans evaluates the call again, and so needs the formula and the data in it.
  fit <- eval(bquote(clmm(.(as.formula(formula)), data = .(tables[[data]]), control = tight)))
  means <- emmeans(fit, as.formula(paste("~", factor)))
  list(data = data, formula = formula, factor = factor,
       call = sprintf("emmeans(clmm(%s), ~ %s); summary(pairs(means), adjust = \"tukey\", infer = TRUE)", formula, factor),
       means = as.data.frame(means),
       tukey = as.data.frame(summary(pairs(means), adjust = "tukey", infer = c(TRUE, TRUE))))
}

# anova() of clmm evaluates the call again, which a formula in a variable does not survive: the same two lines by hand.
compare_fits <- function(name, data, reduced, full, link = "logit") {
  random <- grepl("|", full, fixed = TRUE)
  likelihoods <- list(logLik(fit_model(reduced, data, link, random)), logLik(fit_model(full, data, link, random)))
  statistic <- 2 * (as.numeric(likelihoods[[2]]) - as.numeric(likelihoods[[1]]))
  df <- attr(likelihoods[[2]], "df") - attr(likelihoods[[1]], "df")
  kind <- if (random) "clmm" else "clm"
  list(name = name, data = data, reduced = reduced, full = full, link = link,
       call = sprintf("2 * (logLik(%s(full)) - logLik(%s(reduced))), pchisq(statistic, df, lower.tail = FALSE)",
                      kind, kind),
       statistic = statistic, df = df, p = pchisq(statistic, df, lower.tail = FALSE))
}

fits <- list(
  fit_ordinal("wine_fixed", "wine", "rating ~ temp + contact"),
  fit_ordinal("wine_fixed_probit", "wine", "rating ~ temp + contact", link = "probit"),
  fit_ordinal("wine_judge", "wine", "rating ~ temp + contact + (1 | judge)"),
  fit_ordinal("wine_crossed", "wine", "rating ~ temp + contact + (1 | judge) + (1 | bottle)"),
  fit_ordinal("intercepts", "experiment", "likert ~ condition + kind + (1 | subject) + (1 | item)"),
  fit_ordinal("intercepts_probit", "experiment", "likert ~ condition + kind + (1 | subject) + (1 | item)",
              link = "probit"),
  fit_ordinal("slopes", "experiment",
              "likert ~ condition + kind + (1 + condition | subject) + (1 + condition | item)"),
  fit_ordinal("slopes_probit", "experiment", "likert ~ condition + (1 + condition | subject) + (1 | item)",
              link = "probit"),
  fit_ordinal("unbalanced", "unbalanced", "likert ~ condition + kind + length + (1 + condition | subject) + (1 | item)")
)
tests <- list(
  compare_fits("contact", "wine", "rating ~ temp + (1 | judge)", "rating ~ temp + contact + (1 | judge)"),
  compare_fits("kind", "experiment", "likert ~ condition + (1 | subject) + (1 | item)",
               "likert ~ condition + kind + (1 | subject) + (1 | item)"),
  compare_fits("contact_fixed", "wine", "rating ~ temp", "rating ~ temp + contact")
)
means <- list(
  describe_means("experiment", "likert ~ condition + kind + (1 | subject) + (1 | item)", "kind")
)
# Profile intervals: clm has those of coefficients; of models with random effects only clmm2 has one, of the deviation.
fixed <- clm(rating ~ temp + contact, data = tables$wine)
mixed <- clmm2(rating ~ temp + contact, random = judge, data = tables$wine, Hess = TRUE, nAGQ = 1)
profile_of_sd <- confint(profile(mixed, range = c(0.1, 6), nSteps = 60, trace = 0))
profiles <- list(
  list(data = "wine", formula = "rating ~ temp + contact", call = "confint(clm(formula), type = \"profile\")",
       intervals = describe_columns(confint(fixed, type = "profile"), "low", "high")),
  list(data = "wine", formula = "rating ~ temp + contact + (1 | judge)",
       call = "confint(profile(clmm2(rating ~ temp + contact, random = judge, nAGQ = 1), range = c(0.1, 6), nSteps = 60))",
       intervals = list(list(term = "sd_(Intercept)|judge", low = profile_of_sd[1], high = profile_of_sd[2])))
)
write_json(
  list(versions = list(R = paste(R.version$major, R.version$minor, sep = "."),
                       ordinal = as.character(packageVersion("ordinal")),
                       emmeans = as.character(packageVersion("emmeans"))),
       fits = fits, tests = tests, means = means, profiles = profiles),
  "ordinal.json", auto_unbox = TRUE, digits = I(10), pretty = 1, na = "null", null = "null"
)
