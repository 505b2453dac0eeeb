/// The options of a command for its help.
enum OptionHelp {
    /// A line for each option that is carried out and has something to say.
    static func text(of options: CommandOptions, notes: String = "") -> String {
        (["USAGE: \(options.usage)", "", "OPTIONS:"] + options.all.filter { !$0.help.isEmpty }.map(line))
            .joined(separator: "\n") + notes
    }

    private static func line(_ option: CurlOption) -> String {
        let letter = option.letter.map { "-\($0), " } ?? "    "
        let value = option.valueName.isEmpty ? "" : " \(option.valueName)"
        let name = "  \(letter)--\(option.name)\(value)"
        let padding = String(repeating: " ", count: max(2, 40 - name.count))
        return name + padding + option.help
    }
}
