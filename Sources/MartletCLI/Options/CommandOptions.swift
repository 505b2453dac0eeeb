/// The options of a command, by name and by letter.
struct CommandOptions: Sendable {
    /// All of them, in the order of the help.
    let all: [CurlOption]
    /// The line of the help that says how the command is called.
    let usage: String
    private let byName: [String: CurlOption]
    private let byLetter: [Character: CurlOption]

    /// The options of a command; of two with one name or letter the first counts.
    init(_ all: [CurlOption], usage: String) {
        self.all = all
        self.usage = usage
        byName = Dictionary(all.map { ($0.name, $0) }) { first, _ in first }
        byLetter = Dictionary(all.compactMap { option in option.letter.map { ($0, option) } }) { first, _ in
            first
        }
    }

    /// An option by its long name, without dashes.
    subscript(name: String) -> CurlOption? { byName[name] }

    /// An option by its letter.
    subscript(letter: Character) -> CurlOption? { byLetter[letter] }
}
