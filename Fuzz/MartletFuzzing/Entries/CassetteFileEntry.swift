import MartletTesting

extension FuzzEntry {
    /// HAR files of cassettes.
    ///
    /// An error is `.malformed` with the file, and inside of an entry with its number in the position. What is parsed
    /// survives writing and parsing, and is written identically again. No body exceeds the limit.
    static let cassette = FuzzEntry("cassette") { (bytes) throws(FuzzFinding) in
        let limit = 64
        let file: CassetteFile
        do throws(CassetteError) {
            file = try CassetteFile(parsing: bytes, path: "f.har", bodyLimit: limit)
        } catch {
            guard case .malformed("f.har", let entry, let keyPath, let reason) = error else {
                throw FuzzFinding("another error: \(error)")
            }
            try require(!reason.isEmpty, "an error without a reason")
            let isPlaced = entry.map { keyPath.hasPrefix("log.entries[\($0)]") } ?? !keyPath.contains("[")
            return try require(isPlaced, "entry \(String(describing: entry)) at \(keyPath)")
        }
        let written = file.bytes()
        guard let again = try? CassetteFile(parsing: written, path: "", bodyLimit: limit) else {
            throw FuzzFinding("\(String(decoding: written, as: UTF8.self)) is not read")
        }
        try require(again.bytes() == written, "the file is written in two ways")
        try require(again.recordings.map(\.entry) == file.recordings.map(\.entry), "the entries changed")
        for entry in file.recordings.compactMap(\.entry) {
            try require(max(entry.body.count, entry.request.body.count) <= limit, "a body exceeds the limit")
            try require(entry.response.status.code >= 200, "status \(entry.response.status.code)")
        }
    }
}
