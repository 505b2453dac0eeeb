// Martlet's own tests also use the name of RFC 9110 for header fields.

extension OriginRequestHead { package var fields: OriginFields { headers } }

extension OriginResponse {
    package var fields: OriginFields {
        get { headers }
        set { headers = newValue }
    }

    package init(_ status: Int = 200, fields: OriginFields, body: OriginResponseBody = .empty) {
        self.init(status, headers: fields, body: body)
    }
}

extension InterimResponse { package init(_ status: Int, fields: OriginFields) { self.init(status, headers: fields) } }
