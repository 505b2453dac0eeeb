/// Makes a value of an answer: of its body, and of what its head says about that.
///
/// ```swift
/// let settings = try await session.get(url).decode(using: .propertyList(Settings.self))
/// ```
///
/// A decoder is a value without state of its own: the same one may be at work in many tasks at once. Write one by conforming
/// to this protocol, and a static function for it in an extension where `Self` is the decoder's type, so that call sites
/// read as above.
public protocol ResponseDecoder<Output>: Sendable {
    /// What it makes.
    associatedtype Output: Sendable

    /// The media ranges it makes sense of, such as `application/json`, `image/*` or `*/*`, as an `Accept` field lists them
    /// (RFC 9110 §12.5.1). Empty, the default, means any type.
    ///
    /// They are compared before the body is looked at; an answer without `Content-Type` is not held against them, nor one
    /// whose body is empty.
    var acceptableContentTypes: [String] { get }

    /// Makes the value. Status and content type were looked at before; an empty body is the decoder's to judge.
    ///
    /// - Throws: What it thinks is wrong; callers see that error as it is.
    func decode(_ exchange: HTTPExchange) throws -> Output
}

extension ResponseDecoder {
    /// Any type.
    public var acceptableContentTypes: [String] { [] }
}
