import MartletClient
import MartletStorage

extension HTTPError {
    /// What became of a file of a manager's directory.
    init(storing error: StorageError) {
        self.init(storage: error, origin: nil)
        phase = .preparing
        wasSent = false
    }
}
