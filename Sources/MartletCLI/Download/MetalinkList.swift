import Martlet
import MartletContent
import MartletMetalink

/// The files of Metalink documents, as entries of a list.
enum MetalinkList {
    /// Whether a word of the command line is the path of a document: it ends in `.meta4` and is no URL.
    static func isFile(_ word: String) -> Bool { word.hasSuffix(".meta4") && !word.contains("://") }

    /// Whether a downloaded file is a document, by its media type, or else by the end of its URL.
    static func isDocument(_ result: DownloadResult) -> Bool {
        let type = result.contentType.flatMap { MediaType($0) }
        return type?.essence == Metalink.mediaType || result.url.path.hasSuffix(".meta4")
    }

    /// The files of a document, in order.
    static func entries(of bytes: [UInt8], named name: String) throws(UsageError) -> [DownloadListEntry] {
        let place = name == "-" ? "standard input" : name
        let document: Metalink
        do throws(MetalinkError) { document = try Metalink(bytes) } catch { throw UsageError("\(place): \(error)") }
        if let file = document.files.first(where: \.locations.isEmpty) {
            throw UsageError("\(place): “\(file.name)” has no http or https URL")
        }
        try check(!document.files.isEmpty, "\(place): the Metalink document has no files")
        return document.downloads.map { download in
            var entry = DownloadListEntry(place: place, url: download.url, output: download.name)
            (entry.checksum, entry.mirrors) = (download.options.checksum, download.options.mirrors)
            (entry.byteCount, entry.isOfDocument) = (download.options.expectedByteCount, true)
            return entry
        }
    }

    /// The files of a downloaded document. The document remains.
    static func entries(of result: DownloadResult) async throws(HTTPError) -> [DownloadListEntry] {
        let path = result.path.string
        do {
            guard result.byteCount <= UInt64(Metalink.byteLimit) else {
                throw UsageError("\(path): a Metalink document has at most \(Metalink.byteLimit) bytes")
            }
            return try await Console.attempt { try entries(of: try InputFile.contents(of: path), named: path) }
        } catch {
            let message = (error as? UsageError)?.description ?? "\(error)"
            throw HTTPError(
                .decodingFailed, phase: .processingResponse, message: message, method: .get, url: result.url)
        }
    }
}
