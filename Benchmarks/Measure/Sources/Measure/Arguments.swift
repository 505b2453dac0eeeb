/// The command line of a contender: a scenario, a URL, and words of the form `name=value`.
public struct Arguments: Sendable {
    /// The scenario to run.
    public let scenario: String
    /// The URL to fetch.
    public let url: String
    private let values: [String: String]

    /// Parses the arguments after the program's name.
    /// - Throws: ``Mistake`` if the scenario or the URL is missing, or a word has no `=`.
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

    /// An error in the command line.
    public struct Mistake: Error, CustomStringConvertible {
        /// The explanation of the mistake.
        public let text: String
        /// The explanation, the same as ``text``.
        public var description: String { text }

        /// Creates a mistake from its explanation.
        public init(text: String) { self.text = text }
    }

    /// The value of a name as given, or `nil`.
    public subscript(name: String) -> String? { values[name] }

    /// Returns the value of a name as a number.
    /// - Returns: The default if the value is missing or not a number.
    public func number(_ name: String, _ preset: Int) -> Int {
        values[name].flatMap { Int($0) } ?? preset
    }

    /// Returns a number of seconds, or `nil` if it was not given.
    public func seconds(_ name: String) -> Double? {
        values[name].flatMap { Double($0) }
    }
}
