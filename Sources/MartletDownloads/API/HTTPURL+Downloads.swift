import MartletClient

extension HTTPURL {
    /// Parses the URL of a download.
    init(downloading text: String) throws(HTTPError) {
        do throws(HTTPURL.ParseError) {
            self = try HTTPURL(text)
        } catch {
            throw HTTPError(.invalidURL, phase: .preparing, message: error.description, underlying: error)
        }
    }

    /// The same address without user name and password.
    var withoutUserInfo: HTTPURL {
        do throws(HTTPURL.ParseError) {
            return try HTTPURL(absoluteForm, pathAsIs: true)
        } catch {
            // What was parsed once is parsed again.
            return self
        }
    }
}
