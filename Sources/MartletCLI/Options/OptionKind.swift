/// What an option of curl's does here: the third column of the table of options.
enum OptionKind: Sendable {
    /// Carried out, without a value.
    case flag(@Sendable (inout OptionGroup) throws(UsageError) -> Void)
    /// Carried out, with a value.
    case value(@Sendable (inout OptionGroup, String) throws(UsageError) -> Void)
    /// Ends this transfer's options and begins those of the next.
    case next
    /// Reads options from a file.
    case config
    /// Known, and refused by name: what its feature is.
    case refused(String)
}
