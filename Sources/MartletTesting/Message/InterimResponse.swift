/// A response before the final one (RFC 9110 §15.2).
public struct InterimResponse: Sendable, Hashable {
    /// 100 to 199; 101 is sent as it is, without switching anything.
    public var status: Int
    /// Its fields.
    public var fields: OriginFields

    /// An interim response.
    public init(_ status: Int, fields: OriginFields = [:]) {
        self.status = status
        self.fields = fields
    }

    /// `100 Continue`.
    public static let proceed = InterimResponse(100)

    /// `103 Early Hints` (RFC 8297) with a Link field for each value.
    public static func earlyHints(_ links: String...) -> InterimResponse {
        var fields = OriginFields()
        for link in links { fields.append("Link", link) }
        return InterimResponse(103, fields: fields)
    }
}
