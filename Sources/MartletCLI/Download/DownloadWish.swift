import Martlet

/// What the options that only `download` has ask for.
struct DownloadWish: Sendable {
    /// The most files at once that can be asked for.
    static let fileLimits = 1...256

    /// The folder of the files; `nil` for the working one.
    var folder: String?
    /// Files with lists of URLs; `-` is standard input.
    var lists: [String] = []
    /// Connections for a file.
    var segments = 4
    /// How many files come at once.
    var fileLimit = 3
    /// How many files come at once from one host.
    var fileLimitPerHost = 2
    /// What the one URL must come to.
    var checksum: Checksum?
    /// Bytes a second, all together.
    var rate: Int?
    /// What becomes of a file that is there.
    var collision = DownloadOptions.Collision.fail
    /// What becomes of what an earlier run left.
    var resumption = DownloadOptions.Resumption.automatic
    var keepsRemoteTime = false
    /// The folder of a queue that outlives the program.
    var stateFolder: String?
    var stallTimeout: Duration?
    /// How many failures in a row are borne; `nil` for what downloads bear by default.
    var retryCount: Int?
    var retryDelay: Duration?
}
