/// What one `Set-Cookie` field says, before anybody asks whether the site may say it.
package struct SetCookie: Sendable, Equatable {
    /// The bytes of the name; empty when there is none.
    package var name: [UInt8]
    /// The bytes of the value.
    package var value: [UInt8]
    /// `Max-Age` in seconds, held within the range of the type; nil without a valid one.
    package var maximumAge: Int64?
    /// `Expires` in seconds since 1970; nil without a valid one.
    package var expires: Int64?
    /// `Domain` in lower case, without its leading dot; nil when there is none or it is empty.
    package var domain: [UInt8]?
    /// `Path` when it begins with `/`; nil for that of the request.
    package var path: [UInt8]?
    /// Whether there is `Secure`.
    package var isSecure = false
    /// Whether there is `HttpOnly`.
    package var isHTTPOnly = false
    /// `SameSite`.
    package var sameSite = Cookie.SameSite.unspecified

    /// A cookie without attributes.
    package init(name: [UInt8], value: [UInt8]) {
        self.name = name
        self.value = value
    }
}

extension SetCookie: CustomStringConvertible, CustomReflectable {
    /// The name; the value is left out.
    package var description: String { "\(String(decoding: name, as: UTF8.self))=***" }

    /// Shows the description alone.
    package var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
