extension Call {
    /// What the answer must be: the call's own word, else the session's.
    var validator: ResponseValidator? { options.validator ?? settings.configuration.validator }
}
