/// A parse error before its byte position is turned into characters.
struct URLFault: Error {
    /// What was wrong.
    let code: HTTPURL.ParseError.Code
    /// Where, in bytes of the UTF-8 input.
    let byteOffset: Int
    /// The sentence for ``HTTPURL/ParseError/message``.
    let message: String

    init(_ code: HTTPURL.ParseError.Code, at byteOffset: Int, _ message: String) {
        self.code = code
        self.byteOffset = byteOffset
        self.message = message
    }

    /// The public error, its position counted in characters of `input`.
    func located(in input: String) -> HTTPURL.ParseError {
        let utf8 = input.utf8
        let index =
            utf8.index(utf8.startIndex, offsetBy: byteOffset, limitedBy: utf8.endIndex) ?? utf8.endIndex
        // `distance` rounds an index inside a character down to its start.
        let offset = input.distance(from: input.startIndex, to: index)
        return HTTPURL.ParseError(code: code, offset: offset, message: message)
    }
}
