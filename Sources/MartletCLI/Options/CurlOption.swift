/// One of curl's options, or of our own.
struct CurlOption: Sendable {
    /// Its long name, without dashes.
    var name: String
    /// Its letter, if it has one.
    var letter: Character?
    /// What it does here.
    var kind: OptionKind
    /// One line for the help; empty for options that are not listed there.
    var help: String
    /// What its value is called in the help.
    var valueName: String

    /// An option without a value.
    static func flag(
        _ name: String, _ letter: Character? = nil, _ help: String = "",
        _ apply: @escaping @Sendable (inout OptionGroup) throws(UsageError) -> Void
    ) -> CurlOption {
        CurlOption(name: name, letter: letter, kind: .flag(apply), help: help, valueName: "")
    }

    /// An option with a value.
    static func value(
        _ name: String, _ letter: Character? = nil, _ valueName: String, _ help: String = "",
        _ apply: @escaping @Sendable (inout OptionGroup, String) throws(UsageError) -> Void
    ) -> CurlOption {
        CurlOption(name: name, letter: letter, kind: .value(apply), help: help, valueName: valueName)
    }

    /// An option that is known, and refused.
    static func refused(_ name: String, _ letter: Character? = nil, _ reason: String) -> CurlOption {
        CurlOption(name: name, letter: letter, kind: .refused(reason), help: "", valueName: "")
    }
}
