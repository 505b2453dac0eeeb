import SystemPackage

/// Where a body goes that becomes a download.
struct DownloadDestination: Hashable, Sendable {
    /// The file's name.
    var path: FilePath
    /// Whether a file that has the name may be replaced.
    var overwrites: Bool
}

extension Answer {
    /// Writes the rest of the body to a file, behind what was taken before, under the rules of a download.
    ///
    /// The limit of bodies in memory holds again after a file that could not be created: no byte is lost then.
    func write(_ reader: BodyReader, after taken: [UInt8], to destination: DownloadDestination) async throws {
        let limit = reader.liftLimit()
        let download = FileDownload(
            path: destination.path, overwrites: destination.overwrites,
            origin: call.url.origin.description)
        do {
            try await download.write(reader, after: taken[...])
        } catch {
            if !reader.hasLostBytes { reader.setLimit(limit) }
            throw error
        }
        await call.observer?.downloadFinished(at: destination.path)
    }
}
