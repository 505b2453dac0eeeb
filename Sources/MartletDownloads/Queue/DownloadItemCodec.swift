package import MartletClient
package import MartletStorage
import SystemPackage

/// The form of a download's file: a ``RecordEnvelope`` named `MRTd`, and what is known of the download.
///
/// Version 2; 1 where nothing can be noted of a file that is about to get its name. User info of URLs and fields that hold
/// credentials are not written.
package enum DownloadItemCodec {
    /// The longest file.
    package static let byteLimit = 4 << 20
    private static let envelope = RecordEnvelope(magic: "MRTd", version: 2, byteLimit: byteLimit)

    /// The bytes of a download's file.
    /// - Throws: An ``HTTPError`` with the code `.invalidRequest` where the options cannot be written, or are too large.
    package static func encode(_ item: DownloadItem) throws(HTTPError) -> [UInt8] {
        var writer = envelope.begun()
        try write(item, to: &writer)
        do throws(RecordEnvelope.Fault) {
            return try envelope.sealed(writer)
        } catch {
            throw HTTPError(
                .invalidRequest, phase: .preparing,
                message:
                    "the download's URL, target and options take \(writer.bytes.count) bytes, too many to be kept"
            )
        }
    }

    /// The download in a file's bytes.
    package static func decode(_ bytes: [UInt8]) throws(RecordEnvelope.Fault) -> DownloadItem {
        try envelope.decode(bytes) { reader, version throws(RecordReader.Fault) in
            try item(&reader, version: version)
        }
    }
}
