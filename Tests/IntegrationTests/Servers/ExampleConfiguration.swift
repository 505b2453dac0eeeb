/// A configuration of `Examples/SharedCache`, which the documentation quotes, as tests run it: the file itself, with ports and
/// folders of the test's own.
enum ExampleConfiguration {
    /// Where they are, from the repository's root.
    static let directory = "Examples/SharedCache"

    /// The text of a file, with each of `places` replaced wherever it stands.
    ///
    /// - Throws: `ServerFailure` when one of them stands nowhere: the file would be run with a port or folder of the machine's.
    static func text(_ name: String, replacing places: KeyValuePairs<String, String>) throws -> String {
        var text = try Repository.text("\(directory)/\(name)")
        for (place, own) in places {
            let parts = text.split(separator: place, omittingEmptySubsequences: false)
            guard parts.count > 1 else {
                throw ServerFailure(program: name, reason: "'\(place)' is not in it", log: text)
            }
            text = parts.joined(separator: own)
        }
        return text
    }
}
