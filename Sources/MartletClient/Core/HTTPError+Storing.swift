package import MartletStorage

extension HTTPError {
    /// What became of a file that is kept beside calls: of a directory of downloads, or of requests.
    package init(storing error: StorageError) {
        self.init(storage: error, origin: nil)
        phase = .preparing
        wasSent = false
    }

    /// Does something with the disk before anything was sent.
    package static func storing<Value>(
        _ body: () throws(StorageError) -> Value
    ) throws(HTTPError) -> Value {
        do throws(StorageError) {
            return try body()
        } catch {
            throw HTTPError(storing: error)
        }
    }

    /// Why a folder of records was not opened.
    /// - Parameters:
    ///   - owner: What has it, such as `download manager`.
    ///   - contents: What is in it, such as `downloads`.
    package init(
        refusing refusal: RecordFolder.Refusal, path: String, owner: String, contents: String
    ) {
        switch refusal {
        case .storage(let error): self.init(storing: error)
        case .foreign:
            self.init(
                .fileFailed, phase: .preparing,
                message:
                    "\(path): the directory of the \(contents) belongs to another user; choose one of your own"
            )
        case .writableByOthers:
            self.init(
                .fileFailed, phase: .preparing,
                message:
                    "\(path): others than its owner may write to the directory of the \(contents); chmod 700 it"
            )
        case .otherFiles(let reason):
            self.init(
                .fileFailed, phase: .preparing,
                message:
                    "\(path): is not the directory of a \(owner): \(reason); "
                    + "nothing in it was changed; choose a new or an empty one"
            )
        case .inUse:
            self.init(
                .alreadyInProgress, phase: .preparing,
                message: "\(path): another \(owner) has this directory, here or in another process")
        }
    }
}
