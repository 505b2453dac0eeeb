package import MartletStorage

extension HTTPError {
    /// What became of a file that is kept beside calls: of a directory of downloads, or of requests.
    package init(storing error: StorageError) {
        self.init(storage: error, origin: nil)
        phase = .preparing
        wasSent = false
    }
}
