extension HTTPURL {
    /// Why a string is no address Martlet will use, and at which of its characters.
    ///
    /// The text never repeats user info, path or query: what was refused may hold a secret.
    public struct ParseError: Error, Hashable, Sendable, CustomStringConvertible {
        /// What was wrong.
        public enum Code: String, Hashable, Sendable, CaseIterable {
            /// The string is empty.
            case empty
            /// Longer than ``HTTPURL/lengthLimit`` bytes, as given or once encoded.
            case tooLong
            /// No `http://` or `https://` in front.
            case missingScheme
            /// A scheme other than http and https.
            case unsupportedScheme
            /// The scheme is not followed by `//`.
            case missingAuthority
            /// A tab, line break or other control character, a backslash, or a space at either end.
            case forbiddenCharacter
            /// User info that is not UTF-8 or holds control characters once decoded.
            case invalidUserInfo
            /// No host between `//` or `@` and what follows.
            case emptyHost
            /// A character no host name may hold, written plainly or percent-encoded.
            case forbiddenHostCharacter
            /// A host name that breaks IDNA (UTS #46) or has an empty label.
            case invalidHostName
            /// A label above 63 characters or a name above 253 (RFC 1035 §2.3.4).
            case hostNameTooLong
            /// The last label is a number, but the whole is no IPv4 address.
            case invalidIPv4Address
            /// What stands in brackets is no IPv6 address.
            case invalidIPv6Address
            /// An IPv6 address with a zone (`%eth0`): it means something on one machine only.
            case zoneNotSupported
            /// A port that is not plain digits or not in 1–65535.
            case invalidPort
        }

        /// What was wrong.
        public let code: Code
        /// The character of the input it was found at, counted from 0 in Swift `Character`s; the number of
        /// characters when something is missing at the end.
        public let offset: Int
        /// What was wrong and what to do, as a sentence without a full stop and without the position.
        public let message: String

        /// The message and the position, as in `port 65536 is out of range 1–65535 at character 15`.
        public var description: String { "\(message) at character \(offset)" }
    }
}
