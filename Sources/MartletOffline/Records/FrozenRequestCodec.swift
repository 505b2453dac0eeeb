package import MartletStorage

/// The form of a frozen request's file: a ``RecordEnvelope`` named `MRTo`, and what is known of the request.
///
/// Version 2 adds the deadline on the clock that counts from the start of the computer.
///
/// Secret fields are not in it: they were taken away before.
package enum FrozenRequestCodec {
    /// The longest file.
    package static let byteLimit = 24 << 20
    /// How long texts are, in bytes.
    static let textLimit = 1 << 20
    /// How many fields a request or an answer has.
    static let fieldLimit = 10_000

    private static let envelope = RecordEnvelope(magic: "MRTo", version: 2, byteLimit: byteLimit)

    /// The bytes of a request's file.
    package static func encode(_ request: FrozenRequest) throws(RecordEnvelope.Fault) -> [UInt8] {
        try envelope.encode { write(request, to: &$0) }
    }

    /// The request in a file's bytes.
    package static func decode(_ bytes: [UInt8]) throws(RecordEnvelope.Fault) -> FrozenRequest {
        try envelope.decode(bytes) { reader, version throws(RecordReader.Fault) in
            try request(&reader, version)
        }
    }
}
