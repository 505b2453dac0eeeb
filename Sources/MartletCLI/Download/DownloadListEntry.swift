import Martlet

/// A URL of a list with what its lines say.
struct DownloadListEntry: Sendable {
    /// Where it stands, such as `list, line 3`, for messages.
    var place: String
    /// The URL.
    var url: HTTPURL
    /// `out=`: the file's name.
    var output: String?
    /// `checksum=`: what it must come to.
    var checksum: Checksum?
    /// `header=`: field lines of its requests, each with where it stands.
    var headers: [(place: String, line: String)] = []
}
