/// A configuration of `Examples/SharedCache`, which the documentation quotes. Tests run the file itself, with their own
/// ports and directories.
enum ExampleConfiguration {
    /// The directory of the files, from the root of the repository.
    static let directory = "Examples/SharedCache"

    /// The text of a file, with each occurrence of `places` replaced.
    ///
    /// - Throws: `ServerFailure` if one of them does not occur: the file would then use the machine's ports or
    ///   directories.
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
