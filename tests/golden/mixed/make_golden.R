# Write linear.json and logistic.json: what lme4, lmerTest and emmeans make of the tables in data/.
#
#     Rscript make_golden.R      (in this folder, after simulate_data.R)
#
# The optimisers stop far below their default tolerances, so that differences are not those of early stopping.
suppressPackageStartupMessages({
  library(lme4)
  library(lmerTest)
  library(emmeans)
  library(jsonlite)
})
# Sum-to-zero or polynomial contrasts would give other coefficients than formulaic's treatment contrasts.
options(contrasts = c("contr.treatment", "contr.treatment"))
emm_options(lmer.df = "satterthwaite", lmerTest.limit = 1e5)

read_table <- function(name, factors) {
  frame <- read.csv(file.path("data", paste0(name, ".csv")))
  frame[factors] <- lapply(frame[factors], factor)
  frame
}
tables <- list(
  sleepstudy = read_table("sleepstudy", "Subject"),
  penicillin = read_table("penicillin", c("plate", "sample")),
  cbpp = read_table("cbpp", c("herd", "period")),
  insteval = read_table("insteval", c("s", "d", "dept", "service")),
  experiment = read_table("experiment", c("subject", "item", "condition", "kind"))
)
tables$unbalanced <- subset(tables$experiment, kept == 1)

linear_control <- lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 0.02, rhoend = 1e-9, maxfun = 1e5))
logistic_control <- glmerControl(optimizer = "bobyqa", tolPwrss = 1e-11,
                                 optCtrl = list(rhobeg = 0.02, rhoend = 1e-8, maxfun = 1e5))

describe_random <- function(fit) {
  parts <- as.data.frame(VarCorr(fit))
  lapply(seq_len(nrow(parts)), function(row) {
    part <- parts[row, ]
    group <- sub("\\.[0-9]+$", "", part$grp)  # the second term of a group is "subject.1"
    if (part$grp == "Residual") return(list(kind = "residual", sd = part$sdcor))
    if (is.na(part$var2)) return(list(kind = "sd", group = group, term = part$var1, sd = part$sdcor))
    list(kind = "correlation", group = group, term = part$var1, other = part$var2,
         value = if (is.nan(part$sdcor)) NULL else part$sdcor)
  })
}

describe_columns <- function(table, ...) {
  names <- c(...)
  lapply(seq_len(nrow(table)), function(row) c(
    list(term = rownames(table)[row]),
    setNames(as.list(unname(table[row, seq_along(names)])), names)
  ))
}

describe_means <- function(fit, factor) {
  means <- emmeans(fit, as.formula(paste("~", factor)))
  contrast <- function(adjust) as.data.frame(summary(pairs(means), adjust = adjust, infer = c(TRUE, TRUE)))
  list(
    factor = factor,
    call = sprintf("emmeans(fit, ~ %s); summary(pairs(means), adjust = \"tukey\" or \"holm\", infer = TRUE)", factor),
    means = as.data.frame(means), tukey = contrast("tukey"), holm = contrast("holm")
  )
}

describe_profile <- function(fit) {
  limits <- suppressMessages(confint(fit, method = "profile", oldNames = FALSE))
  list(call = "confint(fit, method = \"profile\", level = 0.95, oldNames = FALSE)",
       intervals = describe_columns(limits, "low", "high"))
}

describe_fit <- function(name, data, formula, fit, call) list(
  name = name, data = data, formula = formula, call = call,
  rows = nobs(fit), loglik = as.numeric(logLik(fit)), parameters = attr(logLik(fit), "df"),
  criterion = if (isREML(fit)) REMLcrit(fit) else deviance_of(fit),
  aic = AIC(fit), bic = BIC(fit), singular = isSingular(fit, tol = 1e-4), random = describe_random(fit)
)
deviance_of <- function(fit) -2 * as.numeric(logLik(fit))

fit_linear <- function(name, data, formula, reml = TRUE, means = NULL, profile = FALSE) {
  fit <- lmerTest::lmer(as.formula(formula), tables[[data]], REML = reml, control = linear_control)
  call <- sprintf("lmerTest::lmer(%s, REML = %s)", formula, reml)
  described <- describe_fit(name, data, formula, fit, call)
  described$reml <- reml
  described$fixed <- describe_columns(coef(summary(fit)), "estimate", "se", "df", "t", "p")
  tests <- anova(fit, type = 3, ddf = "Satterthwaite")
  if (nrow(tests) > 0)
    described$anova <- list(call = "anova(fit, type = 3, ddf = \"Satterthwaite\")",
                            rows = describe_columns(as.matrix(tests)[, 3:6, drop = FALSE], "numerator_df",
                                                    "denominator_df", "f", "p"))
  if (!is.null(means)) described$means <- describe_means(fit, means)
  if (profile) described$profile <- describe_profile(fit)
  described
}

fit_logistic <- function(name, data, formula, means = NULL, profile = FALSE) {
  fit <- glmer(as.formula(formula), tables[[data]], family = binomial, control = logistic_control)
  call <- sprintf("lme4::glmer(%s, family = binomial, nAGQ = 1)", formula)
  described <- describe_fit(name, data, formula, fit, call)
  described$fixed <- describe_columns(coef(summary(fit)), "estimate", "se", "z", "p")
  # Standard errors by the Hessian of the whole deviance (above), and given the variance components.
  described$se_conditional <- unname(sqrt(diag(as.matrix(vcov(fit, use.hessian = FALSE)))))
  if (!is.null(means)) described$means <- describe_means(fit, means)
  if (profile) described$profile <- describe_profile(fit)
  described
}

# A likelihood-ratio test of nested fits, both by maximum likelihood.
compare_fits <- function(name, data, reduced, full, family) {
  fit <- function(formula) if (family == "gaussian")
    lme4::lmer(as.formula(formula), tables[[data]], REML = FALSE, control = linear_control)
    else glmer(as.formula(formula), tables[[data]], family = binomial, control = logistic_control)
  test <- anova(fit(reduced), fit(full))
  list(name = name, data = data, reduced = reduced, full = full,
       call = if (family == "gaussian") "anova(lmer(reduced, REML = FALSE), lmer(full, REML = FALSE))"
              else "anova(glmer(reduced, family = binomial), glmer(full, family = binomial))",
       statistic = test$Chisq[2], df = test$Df[2], p = test[["Pr(>Chisq)"]][2])
}

versions <- function(...) c(
  list(R = paste(R.version$major, R.version$minor, sep = ".")),
  sapply(c(...), function(name) as.character(packageVersion(name)), simplify = FALSE)
)
write_json_file <- function(value, path)
  write_json(value, path, auto_unbox = TRUE, digits = I(10), pretty = 1, na = "null", null = "null")

slopes <- "(1 + condition | subject) + (1 + condition | item)"
linear <- list(
  fit_linear("sleepstudy", "sleepstudy", "Reaction ~ Days + (1 + Days | Subject)"),
  fit_linear("sleepstudy_ml", "sleepstudy", "Reaction ~ Days + (1 + Days | Subject)", reml = FALSE, profile = TRUE),
  fit_linear("sleepstudy_uncorrelated", "sleepstudy", "Reaction ~ Days + (1 | Subject) + (0 + Days | Subject)"),
  fit_linear("sleepstudy_intercepts", "sleepstudy", "Reaction ~ Days + (1 | Subject)"),
  fit_linear("penicillin", "penicillin", "diameter ~ 1 + (1 | plate) + (1 | sample)"),
  fit_linear("insteval", "insteval", "y ~ service + (1 | s) + (1 | d)"),
  fit_linear("insteval_ml", "insteval", "y ~ service + (1 | s) + (1 | d)", reml = FALSE),
  fit_linear("slopes", "experiment", paste("linear ~ condition + kind + length +", slopes), means = "kind"),
  fit_linear("slopes_ml", "experiment", paste("linear ~ condition + kind + length +", slopes), reml = FALSE),
  fit_linear("slopes_uncorrelated", "experiment",
             "linear ~ condition + length + (1 + length || subject) + (1 | item)"),
  fit_linear("factor_slopes", "experiment", "linear ~ kind + (1 + kind | subject) + (1 | item)"),
  fit_linear("interaction", "experiment", paste("linear ~ condition * kind +", slopes)),
  fit_linear("unbalanced", "unbalanced", paste("linear ~ condition + kind + length +", slopes), means = "kind"),
  fit_linear("singular", "experiment", paste("no_slopes ~ condition +", slopes)),
  fit_linear("reaction_time", "experiment", paste("reaction_time ~ condition + kind + length +", slopes),
             means = "kind"),
  fit_linear("reaction_time_unbalanced", "unbalanced", paste("reaction_time ~ condition + kind +", slopes))
)
linear_tests <- list(
  compare_fits("days", "sleepstudy", "Reaction ~ 1 + (1 + Days | Subject)", "Reaction ~ Days + (1 + Days | Subject)",
               "gaussian"),
  compare_fits("slope_of_days", "sleepstudy", "Reaction ~ Days + (1 | Subject)",
               "Reaction ~ Days + (1 + Days | Subject)", "gaussian"),
  compare_fits("service", "insteval", "y ~ 1 + (1 | s) + (1 | d)", "y ~ service + (1 | s) + (1 | d)", "gaussian"),
  compare_fits("kind", "unbalanced", paste("linear ~ condition +", slopes), paste("linear ~ condition + kind +", slopes),
               "gaussian"),
  compare_fits("condition", "experiment", paste("reaction_time ~ kind +", slopes),
               paste("reaction_time ~ condition + kind +", slopes), "gaussian"),
  compare_fits("slopes_of_subjects", "experiment", "linear ~ condition + (1 | subject) + (1 + condition | item)",
               paste("linear ~ condition +", slopes), "gaussian")
)
logistic <- list(
  fit_logistic("cbpp", "cbpp", "ill ~ period + (1 | herd)", means = "period", profile = TRUE),
  fit_logistic("intercepts", "experiment", "correct ~ condition + kind + (1 | subject) + (1 | item)"),
  fit_logistic("slopes", "experiment", paste("correct ~ condition + kind +", slopes), means = "kind"),
  fit_logistic("slopes_uncorrelated", "experiment",
               "correct ~ condition + length + (1 + length || subject) + (1 | item)"),
  fit_logistic("unbalanced", "unbalanced", paste("correct ~ condition + kind +", slopes))
)
logistic_tests <- list(
  compare_fits("period", "cbpp", "ill ~ 1 + (1 | herd)", "ill ~ period + (1 | herd)", "binomial"),
  compare_fits("condition", "experiment", paste("correct ~ kind +", slopes), paste("correct ~ condition + kind +", slopes),
               "binomial"),
  compare_fits("slopes_of_subjects", "experiment", "correct ~ condition + (1 | subject) + (1 + condition | item)",
               paste("correct ~ condition +", slopes), "binomial")
)
write_json_file(list(versions = versions("lme4", "lmerTest", "emmeans"), fits = linear, tests = linear_tests),
                "linear.json")
write_json_file(list(versions = versions("lme4", "emmeans"), fits = logistic, tests = logistic_tests),
                "logistic.json")
