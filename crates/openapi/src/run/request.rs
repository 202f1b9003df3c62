//! The request of a call.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use lambda_tools_core::{Failure, Secret};
use reqwest::{Request, Url};
use serde_json::{Map, Value};

use super::{
    credentials::Sent,
    encode::{for_cookie, pairs, percent, query, simple, text_of},
    multipart,
};
use crate::{
    body::MEDIA_TYPE,
    media_type::{essence_of, is_json, usual_in},
    plan::{Answer, BodyPlan, Encoding, ParameterPlan, Place, RequestPlan, Shape},
};

/// A request without its credentials.
pub(super) struct PreparedRequest {
    method: Method,
    url: Url,
    headers: HeaderMap,
    cookies: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl PreparedRequest {
    /// Returns the request of an input, which satisfies the tool's schema.
    pub(super) fn of(plan: &RequestPlan, base: &str, input: Value) -> Result<Self, Failure> {
        let Value::Object(mut input) = input else {
            return Err(Failure::new("The input is not an object"));
        };
        let mut path = plan.path.clone();
        let mut asked: Vec<String> = Vec::new();
        let mut request = Self {
            method: Method::from_bytes(plan.method.as_bytes())?,
            url: Url::parse(base)?,
            headers: HeaderMap::new(),
            cookies: Vec::new(),
            body: None,
        };
        for parameter in &plan.parameters {
            let Some(value) = value_of(parameter, &mut input) else {
                continue;
            };
            match parameter.place {
                Place::Path => fill(&mut path, parameter, &value)?,
                Place::Query => {
                    let (name, encoding) = (parameter.name(), parameter.encoding);
                    asked.extend(pairs(name, &value, encoding, parameter.reserved));
                }
                Place::Header => {
                    let text = simple(&value, parameter.encoding, str::to_owned);
                    request.add_header(parameter.name(), &text)?;
                }
                Place::Cookie => {
                    let text = for_cookie(&simple(&value, parameter.encoding, str::to_owned));
                    request.cookies.push((parameter.name().to_owned(), text));
                }
            }
        }
        request.url = url_of(base, &path, &asked)?;
        request
            .headers
            .insert(header::ACCEPT, accepted(&plan.answer)?);
        if let Some(body) = &plan.body {
            request.add_body(body, input)?;
        }
        Ok(request)
    }

    /// Adds a header, whose value must be on one line.
    pub(super) fn add_header(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let value = HeaderValue::from_str(value)
            .map_err(|_| Failure::new(format!("{name} has characters that no header can have")))?;
        self.headers
            .insert(HeaderName::from_bytes(name.as_bytes())?, value);
        Ok(())
    }

    fn add_body(&mut self, plan: &BodyPlan, mut input: Map<String, Value>) -> Result<(), Failure> {
        let (media_type, body) = match plan.shape {
            Shape::Text | Shape::Base64 | Shape::Whole => {
                let mut take = |property: &str| {
                    // A parameter may have taken the name.
                    let renamed = plan.names.iter().find(|(_, name)| *name == property);
                    let key = renamed.map_or(property, |(key, _)| key);
                    let fixed = plan.fixed.get(property).cloned();
                    fixed.or_else(|| input.remove(key))
                };
                let Some(value) = take("body") else {
                    return Ok(());
                };
                let (media_type, body) = whole(plan, value)?;
                match plan.media_type.strip_suffix("/*") {
                    Some(range) => {
                        let chosen = take(MEDIA_TYPE).and_then(|it| it.as_str().map(str::to_owned));
                        (chosen.unwrap_or_else(|| usual_in(range).to_owned()), body)
                    }
                    None => (media_type, body),
                }
            }
            Shape::Fields => {
                let named = input.into_iter().map(|(key, value)| {
                    let name = plan.names.get(&key).cloned();
                    (name.unwrap_or(key), value)
                });
                let mut fields: Map<String, Value> = named.collect();
                // No further field of an open body takes the place of one that is fixed.
                fields.extend(plan.fixed.clone());
                if fields.is_empty() && !plan.required {
                    return Ok(());
                }
                of_fields(plan, fields)?
            }
        };
        self.headers
            .insert(header::CONTENT_TYPE, HeaderValue::from_str(&media_type)?);
        self.body = Some(body);
        Ok(())
    }

    /// Returns the request with credentials.
    pub(super) fn with(&self, credentials: &[Sent]) -> Result<Request, Failure> {
        let mut request = Request::new(self.method.clone(), self.url.clone());
        *request.headers_mut() = self.headers.clone();
        *request.body_mut() = self.body.clone().map(Into::into);
        let mut cookies = self.cookies.clone();
        for credential in credentials {
            match credential {
                Sent::Header(name, value) => {
                    let name = HeaderName::from_bytes(name.as_bytes())?;
                    request.headers_mut().insert(name, value.clone());
                }
                Sent::Query(name, value) => {
                    let pair = query(&[(name.clone(), value.expose().to_owned())]);
                    let before = request.url().query().map(|it| format!("{it}&"));
                    let all = before.unwrap_or_default() + &pair;
                    request.url_mut().set_query(Some(&all));
                }
                Sent::Cookie(name, value) => {
                    cookies.push((name.clone(), cookie_value(name, value)?));
                }
            }
        }
        if !cookies.is_empty() {
            let cookies = cookies.iter().map(|(name, text)| format!("{name}={text}"));
            let cookies = cookies.collect::<Vec<_>>().join("; ");
            request
                .headers_mut()
                .insert(header::COOKIE, HeaderValue::from_str(&cookies)?);
        }
        Ok(request)
    }
}

/// Takes the value of a parameter out of the input.
fn value_of(parameter: &ParameterPlan, input: &mut Map<String, Value>) -> Option<Value> {
    let fixed = parameter.fixed.clone();
    let value = fixed.or_else(|| input.remove(parameter.key.as_ref()?))?;
    (!value.is_null()).then_some(value)
}

/// Returns a secret as the value of a cookie, which has no encoding: RFC 6265, 4.1.1.
fn cookie_value(name: &str, secret: &Secret) -> Result<String, Failure> {
    let text = secret.expose().trim();
    let inner = text.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let is_octet = |it: u8| it.is_ascii_graphic() && !b"\",;\\".contains(&it);
    if inner.unwrap_or(text).bytes().all(is_octet) {
        return Ok(text.to_owned());
    }
    Err(super::credentials::unusable("cookie", name))
}

/// Fills a template of a path. No value may change which resource the path names.
fn fill(path: &mut String, parameter: &ParameterPlan, value: &Value) -> Result<(), Failure> {
    let text = simple(value, parameter.encoding, percent);
    if text.is_empty() {
        return Err(Failure::new(format!(
            "{} must not be empty",
            parameter.name()
        )));
    }
    *path = path.replace(&format!("{{{}}}", parameter.name()), &text);
    Ok(())
}

fn url_of(base: &str, path: &str, asked: &[String]) -> Result<Url, Failure> {
    // Some documents tell operations of one path apart by a fragment, which no request has.
    let path = path.split('#').next().unwrap_or_default();
    // A URL parser would resolve these segments, and name another resource.
    if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err(Failure::new("A part of the path must not be `.` or `..`"));
    }
    let mut text = format!("{base}{path}");
    if !asked.is_empty() {
        let separator = if path.contains('?') { '&' } else { '?' };
        text.push(separator);
        text += &asked.join("&");
    }
    let url = Url::parse(&text)?;
    let base = Url::parse(base)?;
    if url.origin() != base.origin() || !url.path().starts_with(base.path().trim_end_matches('/')) {
        return Err(Failure::new("The request would leave the API"));
    }
    Ok(url)
}

fn accepted(answer: &Answer) -> Result<HeaderValue, Failure> {
    let media_type = match answer {
        Answer::Json(media_type) | Answer::Text(media_type) | Answer::Content(media_type) => {
            media_type
        }
        Answer::Redirect | Answer::Any => "*/*",
    };
    Ok(HeaderValue::from_str(media_type)?)
}

/// Returns the media type and the bytes of a body that is one property.
fn whole(plan: &BodyPlan, value: Value) -> Result<(String, Vec<u8>), Failure> {
    let media_type = plan.media_type.clone();
    match (plan.shape, value) {
        (Shape::Text, value) => Ok((media_type, text_of(&value).unwrap_or_default().into_bytes())),
        (Shape::Base64, value) => {
            let text = value.as_str().unwrap_or_default();
            let bytes = STANDARD
                .decode(text)
                .map_err(|_| Failure::new("body is not base64"))?;
            Ok((media_type, bytes))
        }
        (_, Value::Object(fields)) => of_fields(plan, fields),
        (_, Value::String(text)) if !is_json(&essence_of(&media_type)) => {
            Ok((media_type, text.into_bytes()))
        }
        (_, value) => Ok((media_type, serde_json::to_vec(&value)?)),
    }
}

fn of_fields(
    plan: &BodyPlan,
    mut fields: Map<String, Value>,
) -> Result<(String, Vec<u8>), Failure> {
    if let Some(name) = &plan.envelope
        && !(fields.is_empty() && plan.optional_envelope)
    {
        fields = Map::from_iter([(name.clone(), fields.into())]);
    }
    if plan.media_type.starts_with("multipart/") {
        return multipart::body_of(fields, plan);
    }
    if plan
        .media_type
        .starts_with("application/x-www-form-urlencoded")
    {
        let all = fields.iter().flat_map(|(name, value)| {
            let usual = if value.is_object() {
                Encoding::Json
            } else {
                Encoding::Usual
            };
            let encoding = plan.encodings.get(name).copied().unwrap_or(usual);
            pairs(name, value, encoding, false)
        });
        let form = all.collect::<Vec<_>>().join("&");
        return Ok((plan.media_type.clone(), form.into_bytes()));
    }
    Ok((plan.media_type.clone(), serde_json::to_vec(&fields)?))
}
