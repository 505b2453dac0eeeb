import MartletCore

/// The delivered data of a call and its error.
struct HostileReceipt: Sendable {
    var fields = HTTPFields()
    var body: [UInt8] = []
    var trailers: HTTPFields?
    var interim: [HTTPResponse] = []
    /// The error that ended the call.
    var error: HTTPError?
    /// The description of an error of another type, which no call may throw here.
    var strangeError: String?

    var text: String { String(decoding: body, as: UTF8.self) }

    /// Whether any content of the attacker was delivered.
    var isPoisoned: Bool {
        text.contains("EVIL")
            || (Array(fields) + Array(trailers ?? HTTPFields())).contains {
                $0.name.rawName.contains("EVIL") || $0.value.contains("EVIL")
            }
    }
}
