# Fit a mixed model by lme4, lmerTest or ordinal for the bridge of lme4_regression.py.
#
#     Rscript --vanilla fit_model.R FOLDER FAMILY METHOD
#
# FOLDER holds formula.txt, rows.csv (factors as codes from 1) and levels.csv (column, level; in order). The results are
# written beside them: coefficients.csv, random.csv, model.csv and notes.csv. A package that is missing is named on
# standard output, with exit status 3.
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
family <- arguments[2]
method <- arguments[3]
packages <- switch(family, gaussian = c("lme4", "lmerTest"), binomial = "lme4", "ordinal")
missing <- packages[!vapply(packages, requireNamespace, logical(1), quietly = TRUE)]
if (length(missing) > 0) {
  cat("missing:", missing, "\n")
  quit(status = 3)
}

read_text <- function(name) read.csv(
  file.path(folder, name), check.names = FALSE, colClasses = "character", na.strings = character(), encoding = "UTF-8"
)
frame <- read.csv(file.path(folder, "rows.csv"), check.names = FALSE, encoding = "UTF-8")
levels <- read_text("levels.csv")
for (column in unique(levels$column)) {
  labels <- levels$level[levels$column == column]
  frame[[column]] <- factor(frame[[column]], levels = seq_along(labels), labels = labels)
}
formula <- as.formula(paste(readLines(file.path(folder, "formula.txt"), encoding = "UTF-8"), collapse = " "))
# Treatment coding for every factor, as in the other engine.
options(contrasts = c("contr.treatment", "contr.treatment"))

notes <- character()
record <- function(condition) {
  notes <<- c(notes, conditionMessage(condition))
  invokeRestart(if (inherits(condition, "warning")) "muffleWarning" else "muffleMessage")
}
outcome <- all.vars(formula)[1]
is_mixed <- any(grepl("|", deparse(formula), fixed = TRUE))
if (startsWith(family, "ordinal")) frame[[outcome]] <- factor(frame[[outcome]], ordered = TRUE)
fit <- withCallingHandlers(
  if (family == "gaussian") {
    # The default optimiser, nloptwrap, stops at fits that are singular only by its mistake.
    lmerTest::lmer(formula, frame, REML = method == "REML", control = lme4::lmerControl(optimizer = "bobyqa"))
  } else if (family == "binomial") {
    # The default tolPwrss of 1e-7 leaves an error of up to 2 % in the standard errors.
    control <- lme4::glmerControl(optimizer = "bobyqa", tolPwrss = 1e-10)
    lme4::glmer(formula, frame, family = stats::binomial, control = control)
  } else if (is_mixed) {
    ordinal::clmm(formula, data = frame, link = method, Hess = TRUE)
  } else {
    ordinal::clm(formula, data = frame, link = method)
  },
  warning = record, message = record
)

table <- coef(summary(fit))
is_linear <- family == "gaussian"
coefficients <- data.frame(
  term = rownames(table), estimate = table[, 1], se = table[, 2], df = if (is_linear) table[, "df"] else NA
)
thresholds <- if (startsWith(family, "ordinal")) length(fit$alpha) else 0

describe_group <- function(part, group) {
  sds <- attr(part, "stddev")
  correlations <- attr(part, "correlation")
  do.call(rbind, lapply(seq_along(sds), function(i) data.frame(
    group = sub("\\.[0-9]+$", "", group), term = rownames(part)[i], sd = sds[[i]],
    correlations = paste(correlations[i, seq_len(i - 1)], collapse = " ")
  )))
}
components <- if (startsWith(family, "ordinal") && !is_mixed) list() else {
  if (startsWith(family, "ordinal")) ordinal::VarCorr(fit) else lme4::VarCorr(fit)
}
random <- do.call(rbind, Map(describe_group, components, names(components)))
sizes <- if (length(components) == 0) integer() else {
  if (startsWith(family, "ordinal")) vapply(ordinal::ranef(fit), nrow, 1L) else summary(fit)$ngrps
}
if (!is.null(random)) random$groups <- sizes[random$group]

write_table <- function(value, name) write.csv(value, file.path(folder, name), row.names = FALSE, fileEncoding = "UTF-8")
write_table(format(coefficients, digits = 15), "coefficients.csv")
if (!is.null(random)) write_table(format(random, digits = 15), "random.csv")
optimizer <- if (startsWith(family, "ordinal")) "" else ", bobyqa"
version <- paste(packages, vapply(packages, function(name) as.character(packageVersion(name)), ""), collapse = ", ")
is_singular <- if (startsWith(family, "ordinal")) any(random$sd < 1e-4) else lme4::isSingular(fit, tol = 1e-4)
write_table(data.frame(
  key = c("log_likelihood", "parameters", "rows", "residual_sd", "is_singular", "thresholds", "engine"),
  value = c(format(as.numeric(logLik(fit)), digits = 15), attr(logLik(fit), "df"), nobs(fit),
            if (is_linear) format(sigma(fit), digits = 15) else "", is_singular, thresholds,
            sprintf("%s (R %s.%s%s)", version, R.version$major, R.version$minor, optimizer))
), "model.csv")
write_table(data.frame(note = as.character(notes)), "notes.csv")
