/// The command line of a contender: a scenario, a URL, and words of the form `name=value`.
public struct Arguments: Sendable {
    /// What to run.
    public let scenario: String
    /// What to fetch.
    public let url: String
    private let values: [String: String]

    /// Reads the words behind the program's name.
    /// - Throws: ``Mistake`` when scenario or URL is missing, or a word has no `=`.
    public init(_ words: [String]) throws(Mistake) {
        guard words.count >= 2 else { throw Mistake(text: "usage: SCENARIO URL [NAME=VALUE …]") }
        scenario = words[0]
        url = words[1]
        var values: [String: String] = [:]
        for word in words.dropFirst(2) {
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { throw Mistake(text: "no '=' in \(word)") }
            values[String(parts[0])] = String(parts[1])
        }
        self.values = values
    }

    /// What is wrong with a command line.
    public struct Mistake: Error, CustomStringConvertible {
        /// What is wrong.
        public let text: String
        /// The same.
        public var description: String { text }

        /// What is wrong, in words.
        public init(text: String) { self.text = text }
    }

    /// A value as it was given.
    public subscript(name: String) -> String? { values[name] }

    /// A value that is a number.
    /// - Returns: The default where it is missing or no number.
    public func number(_ name: String, _ preset: Int) -> Int {
        values[name].flatMap { Int($0) } ?? preset
    }

    /// A number of seconds, if it was given.
    public func seconds(_ name: String) -> Double? {
        values[name].flatMap { Double($0) }
    }
}
