import MartletStorage

/// Why a record cannot be read.
enum OfflineRecordFault: Error, CustomStringConvertible {
    /// Its file cannot be.
    case storage(StorageError)
    /// It makes no sense.
    case record(RecordEnvelope.Fault)

    /// Whether there is no such file.
    var isMissing: Bool {
        if case .storage(let error) = self { error.isMissingFile } else { false }
    }

    var description: String {
        switch self {
        case .storage(let error): error.description
        case .record(let fault): fault.description
        }
    }
}
