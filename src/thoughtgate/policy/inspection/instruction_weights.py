"""The weights of features, of definitions and contents; written by ``tools/fit_instruction_weights.py``.

Each line has a weight and the features that have it, two spaces between them.
"""

from typing import Final

DEFINITIONS: Final = """
-0.193  "
-0.192  #first #talk
-0.185  #first #model
-0.182  e g
-0.174  #care
-0.173  by .. user
-0.17  ^
-0.167  #first #secret  ^ alway  an
-0.166  do not
-0.163  #identifier #in text
-0.158  #in text #open
-0.154  eine
-0.153  personal data
-0.152  such as
-0.15  #known model  #use #user
-0.146  to .. to
-0.144  pass
-0.143  #no #personal  such
-0.139  #in text #known secret  permission .. the
-0.138  can
-0.137  the server
-0.136  #in text #no  a note
-0.132  #obey #you  ^ prefer
-0.131  mention .. user
-0.13  #about #first  #known secret  #obey #telling prior  {
-0.129  other tool
-0.128  #model #telling prior  http .. com
-0.127  #open #user  x0 .. 0
-0.126  error  or
-0.125  #form #in text  before
-0.123  empty  unless
-0.122  be .. in
-0.12  #care #in text  prefer  use
-0.119  #in parameter #returns  you .. a
-0.117  #first #give  #known thing  service  sign
-0.116  #care #secret  #their #trigger  add  cannot  mention .. the
-0.115  get the  include
-0.114  #in parameter #trigger  attempt
-0.113  customer  the .. get  valu
-0.112  page  using  write
-0.111  example :  tell .. user
-0.11  ` x0  call this  com  }
-0.109  #give #obey  step
-0.108  0
-0.107  #in text #known model  when you
-0.106  before you
-0.105  #first #obey  ^ use  mcp  my  per
-0.104  #about  #model #user  character  once  the tool
-0.103  #form  header
-0.102  #no #secret  #obey #thing  get
-0.101  #divert #in parameter  #their #use  ^ `  can't  stop
-0.1  #before #identifier  did  tool of
-0.099  : 0  ^ example  x0 `
-0.098  action
-0.097  #in text #known thing  and .. a  com /  of .. server  this .. user
-0.096  #open #telling rules  data  see http  task
-0.095  #consent #user  ^ pass  are  g  information  thread
-0.094  #bias  #forced #say  #returns #secret  a .. on  object  prefer .. over  tell  uses
-0.093  a .. in  for the  role
-0.092  #first #their  ^ show  e mail  stag  support  use .. tool  مع
-0.091  #about #telling rules  #office #telling rules  : '  bitte  case  to .. id
-0.09  #excuse #telling prior  #first #harm  #returns #their  no .. the  prompt .. the
-0.089  git  match .. the  of .. as  of .. to  one  only .. the  organization  respect
-0.088  #before #open  #first #office  ' ignore  0 :  previou
-0.087  #first #personal  #give #telling ignore  ^ "  be  only  sign in  verify  width
-0.086  #consent #duty  #known obey  #open #talk  ' '  ^ system  a .. a  allow  an .. a  current  runs  the chart  zero
-0.085  #divert #say  #first #user  exampl  name of  sent
-0.084  #excuse #first  ^ set  event  must  requir  set  start
-0.083  #before #in text  #in parameter  #known user  a  after  as .. x0
-0.082  #in parameter #quoted  a message  after the  content .. a  exact  keys  request to
-0.081  #before #consent  #in text #known user  : `  edit  pass .. the  plain  search
-0.08  #discredit #use  #returns #say  ^ url  is sent  password  see  that .. user  uma  with .. name  yaml
-0.079  " "  #known use  ^ the  ` curl  not  system  text as
-0.078  #first #param  #form #identifier  #in text #known use  #in text #take  ^ run  creat  element  log  not .. to  of .. conversation  one .. the  record  release  unless the  up the  within
-0.077  #form #personal  #in output  #rank #telling prior  ^ emite  command  del  emite  script  specific  with .. only
-0.076  #ask #user  #no #returns  ^ path  ^ support  a .. before  application  benutzer  config  secret
-0.075  the server'
-0.074  #address #secret  #consent #take  : "  already  list  you must
-0.073  #about #telling file  a password  before .. it  hello  to read  two number
-0.072  #form #secret  #identifier #please  ^ call  ^ check  conversation  short  single  una  updat  user has
-0.071  #about #you  #in text #not harm  #obey #returns  ^ data  ^ start  ^ whether  asks the  consulta  dem .. muss  encod .. the  know  like  path  that the  कष
-0.07  #address #in parameter  ^ requir  call .. the  file to  search the  syntax  this conversation
-0.069  #no #not harm  #not harm  #office #telling prompt  / ssh  before .. tool  language  relevant
-0.068  #consent #form  #in text #use  #own parameter #telling ignore  #returns #self  #returns #thing  / docs  app  bot  chang  enough  model  parameter  read the  reset  resource  return .. of  the page
-0.067  ^ print  caller  is .. is  post  «  »
-0.066  #in parameter #own parameter  #known talk  a .. or  alway  are kept  change  if .. is  muss der  omitt  other .. of  out .. and  resourc  return .. as  show .. of  text .. a  than  tool .. server  tool .. this
-0.065  #form #telling prior  #no #telling rules  ^ return  as .. or  bank app  between .. and  call .. first  decod  read .. before  so .. the  user for
-0.064  #identifier #no  #known user #use  ^ '  ^ ask  ^ create  ^ query  ^ translate  ^ vor  how  iso  need the  or a  out  vor dem  x0 .. for
-0.063  #in parameter #known thing  by the  extract  ignor  notification  support .. and  tell .. to  to .. file  to an
-0.062  #forced #trigger  #talk #telling rules  #trigger #you  ^ hidden  ^ secret  ` `  ` and  in .. app  in the  nur  return by  to .. for  use .. for  user agent
-0.061  #form #trigger  #known self #telling rules  #then #use  between  if  read .. of  relat  this server  ticket  where  xml
-0.06  #first #rank  #in parameter #known secret  #not say #trigger  #office #returns  are .. from  cannot be  graph  into  redact  so .. you  the .. fail  toujour  x
-0.059  #secret #talk  den  file .. a  for  is .. the  is written  of .. in
-0.058  " :  #every #take  #first #thing  an image  beginn of  call .. before  not .. them  on .. for  the .. if  the .. url  to .. it  to .. or  use this
-0.057  #ask #first  #care #not use  #every #telling prior  #in text #secret  #rank #telling ignore  #secret #silent  = 0  a .. as  a .. its  collection  create a  for .. with  of .. page  think  to the
-0.056  #before #telling ignore  #first #take  chart .. an  contain  execut  invent  of .. or  overrid  record .. the  remov  set the  should be  test  url .. the  who  x0 .. hello
-0.055  #known use #user  #no #telling prior  adds .. number  as .. and  cross  dem  project  the .. current
-0.054  #before #known thing  #in text  #telling ignore #trigger  ^ adds  a .. so  against  as data  be .. 0  install  provide  queri  run .. on  sentry  usuario  whether to
-0.053  #ask #returns  #in text #known talk  #known thing #model  / www  a .. against  a .. and  cursor  default to  if a  mail  muss  text .. is  the .. agent  when .. a  www
-0.052  #excuse #returns  #first #form  #in text #not give  #in text #not obey  #no #not obey  #no #others  #not obey  #param #trigger  ^ each  ^ execute  ^ password  als  file  for example  name .. the  personal  schema  send .. mail  tabl  the .. cannot  titl
-0.051  #returns #talk  / config  can be  chang .. the  check .. the  endpoint  fiscal  in .. file  pas  stay  to .. default  upload a  use .. or  user .. a
-0.05  #about #param  #divert #give  #form #param  #known thing #telling ignore  #returns #whole  compare  must .. with  on .. the  request .. with  this .. a  user .. in  what to  ह
-0.049  #about #self  #give #thing  #in parameter #known model  #param #use  ' or  ^ read  ^ review  a new  another  ask .. user  generat .. password  in .. so  on a  one time  process  style  text :  the project  the url  version
-0.048  #about #secret  #no #whole  as .. not  instead  pull request  the .. configur  the .. default  the .. has  to .. in  user .. for  user .. this
-0.047  #address #in label  #in parameter #param  ^ decod  before .. other  bucket  city  docker  encod  must be  only .. user  own  search for  show .. a  stor .. the  the .. any  to .. model  trace
-0.046  #care #thing  #give #telling file  #identifier #thing  #no #telling ignore  : /  a .. user  a pull  at .. of  back  browser  example com  for password  job  logg  on .. and  ssh /  the .. after  the .. graph  use .. when  vat  with a
-0.045  #form #telling ignore  #returns #silent  :  a .. message  analysi  commit  find the  issu  of .. from  org /  prompt injection  return .. 0  this .. by  title  typed  user and  whether  you can
-0.044  #consent #first  #duty #returns  #first #self  #first #telling prior  #form #not use  #office #take  #quoted #use  of .. name  plac  private  rather  rather than  sent to  with .. user
-0.043  #every #office  #form #give  #form #telling rules  #give #harm  #in parameter #known use  #please #use  #quoted #you  #take #telling rules  : http  ^ fetch  generate  key is  list the  pull  the .. ssh  the .. unless  the chat  the new
-0.042  #excuse #form  #identifier #purpose  #quoted #returns  #returns #take  #take #telling file  a .. for  when .. are
-0.041  #consent #thing  #no #obey  #open #trigger  #returns #you  #talk #user  : [  : no  ^ take  ask the  click  configur  for .. the  is .. from  maximum  open  password or  upload .. file  use .. you  weather .. city  त
-0.04  #about #returns  #before #use  #care #user  #duty #silent  #model #telling rules  #telling ignore #thing  ante de  any .. this  as x0  enter  it in  messag  path to  several  stor in  take  the current  to .. only  use .. before  with `
-0.039  #about #take  #about #thing  #ask #open  #first #you  #in text #thing  ^ get  ^ store  a .. that  add a  description .. the  directly  exist  save  the .. never  the recipient
-0.038  #divert  #obey #telling rules  #personal #silent  ^ write  is .. server  precedence over  this is  “
-0.037  #known use #trigger  #talk #their  ^ repository  do .. use  is return  isn't  it as  not .. or  not use  page .. the  provid  repository name  that you  to .. before  variabl
-0.036  #before #care  #no #self  #open #say  #param #thing  #telling rules #thing  ^ credential  ^ scan  a .. without  byte  connect to  documentation  fetch  or .. are  read .. the  response  type  user .. and
-0.035  #care #no  #duty #you  #first #no  and is  convert  first and  get a  is .. not  javascript  of this  text
-0.034  #first #say  #in text #purpose  #purpose #use  #returns #use  access .. the  duration  kubeconfig  path .. file  secret .. the  the .. by  the test  time .. the  user .. to
-0.033  #care #duty  #consent #every  #duty #known thing  a .. with  a user  and  as .. for  clear  e .. address  org  send an  stor a  the .. of  what .. user
-0.032  #consent #their  #returns  ^ upload  ` as  all .. a  describe  email  ids  instruction  les  set .. of  to .. repository  { "
-0.031  #personal #returns  #purpose  /  ^ only  account  and .. 0  format code  need .. the  never  new  of an  only .. allow  place  summary  take precedence  the .. environment  when .. in
-0.03  #before #you  #care #give  #care #known thing  alert  credential .. the  detail  don't .. the  it .. and  or .. from  the .. page  the id  tool for
-0.029  #take #telling prior  ^ add  ^ name  a single  a specific  before .. to  docs  keyword  miss  participant  the .. command  unless .. is  written
-0.028  #care #consent  #care #open  #give #param  #in value  #model #use  ^ output  a .. question  an .. request  based  fact  http .. org  in .. format  instead of  number .. 0  of .. of  the .. should  to return  use it
-0.027  #before #quoted  #no #thing  #take #telling reset  ^ all  a .. to  asks  chat  confirm  mail address  need .. of  of .. it  on .. page  pdf  runs .. of  system prompt  will be
-0.026  #every #obey  #identifier #in parameter  #known thing #no  ^ don't  ^ if  ^ open  before `  knowledge  path .. the  precedence  query  return  the .. must  whenever  x0 .. and
-0.025  #before #purpose  #say #secret  #telling prior #use  ^ list  and x0  connect  default  for a  knowledge graph  open a  outside  source  the .. policy  unless .. user  you
-0.024  #first #then  : use  ^ extract  ^ include  for this  one of  return .. with  the .. file  the connect  translate  when  work  x0 :  必
-0.023  #about #model  #care #form  #every #in text  #in parameter #silent  #office #talk  #rank #take  ^ http  ^ result  a .. repository  a .. time  a github  as .. are  by id  client .. the  form  github repository  specifi  to .. of
-0.022  #every #talk  #first #whole  #form #office  #identifier #use  #known take #use  #param  / id  ^ appli  ^ generate  ^ gets  discover  the .. asked  treat  up to
-0.021  #duty #thing  #form #known use  #open  #secret #then  0 `  b  ignore  it for  take a  tool when  use .. user
-0.02  #every #say  #excuse #use  #in text #known give  #model #returns  / /  a .. id  at  contain the  done  grep  in .. by  key .. the  name  never .. the  show the  the .. says  then
-0.019  #about #talk  #divert #thing  #in text #whole  address  an http  the query  they .. it  uses the
-0.018  a .. agent  each  of .. query  private key  sms  that .. in
-0.017  #consent  #first #silent  #first #use  #form #no  #open #secret  ^ what  a .. the  alway .. the  for .. and  injection  the .. first  the .. point  use .. the
-0.016  #ask #trigger  #before #silent  #before #user  #every #returns  #in parameter #known obey  #in text #known personal  #known secret #no  #own parameter #then  #thing #whole  = "  ^ no  complete  don't  id  must .. the  the .. each  the .. itself
-0.015  #harm #say  #self #use  #telling unasked #user  ^ search  full .. of  should .. the  that is
-0.014  #divert #trigger  against the  description  handle  run the  the .. one  token .. the
-0.013  #give #you  #others #telling others  #quoted  all  and .. to  content .. file  show  user  when a
-0.012  #in text #returns  #personal #secret  are .. to  el  run  stor  time
-0.011  #take #use  #then #you  0 character  is set  mcp server  optional  the text  the value
-0.01  #consent #in text  #every #quoted  #form #returns  appli  default is  notion  the .. token  to 0
-0.009  #before #duty  #divert #use  #duty #no  #in text #known take  access  find .. a  other .. this  result .. the
-0.008  #every #others  #give #known thing  #personal #user  #telling prior  #thing #trigger  ignore .. instruction  made  prompt  scan  should  the .. it  with
-0.007  #forced  #identifier #take  #param #telling file  #quoted #telling prior  #talk #then  '  0 .. request  a .. of  and return  are not  list of  mention  the .. app  to a
-0.006  #rank #returns  and .. as  get .. a  important  list .. the  wrong
-0.005  #first #telling file  #self #thing  #telling quiet #user  #trigger  adds  and .. at  the .. to  the plan  unit
-0.004  #form #harm  #give #own parameter  #telling rules #you  ` in  in .. to  this .. to  what the
-0.003  " }  #excuse #then  #give #no  #in parameter #telling file  #known take  #secret #trigger  #silent #telling prior  #thing #user  do .. this  http  the .. with
-0.002  #duty #quoted  #harm #no  #self  ^ file  second  the .. for  you need
-0.001  #obey #user  / aws  a .. e  node  output  use `
0.001  #about #harm  #every #open  #no #not give  #not give  #say #telling prior  |
0.002  #excuse #user  #form #take  ^ send  use .. to
0.003  #duty #use  #not give #user  #not say #user  and .. for  do .. the  from the  is  the .. text
0.004  #every #first  #form #model  from  of .. the  search .. the
0.005  #duty #whole  #form #in parameter  ^ full
0.006  #about #in text  #form #obey  #give #take  #obey #use  #own parameter #say  #telling file #use  #trigger #use  #use #you  card  sets
0.007  #no #their  #say #you  das  includ  so that  that .. to
0.008  #form #self  #others #trigger  #say  #say #then  entiti  find  input  when .. is
0.009  #about #every  #duty #their  #model #self  ^ creat  branch  is .. for
0.01  #address #use  #telling file #telling prior  is kept  now  the .. its  the .. the  x0 .. the
0.011  #consent #quoted  #in text #self  #model #office  [  ^ find  de  is .. to  not tell  session  suggest  warning
0.012  #every #give  #excuse #in text  #give #in text  #in parameter #user  #then #whole  ^ it  or .. the  term
0.013  #every #self  #excuse #thing  #identifier #model  #known take #user  #no  #param #secret  which
0.014  #before #every  #in parameter #telling prior  #model #personal  are .. in  would
0.015  #duty  #model #param  #own parameter #trigger  #param #then  instruction .. the  request
0.016  #excuse #own parameter  #give #their  #in text #please  #returns #telling file  #take #whole  ask  do  environment  the user
0.017  #give #returns  #others #thing  #use  ^ 0  also .. the  delet  target  to .. the
0.018  #ask #in text  #identifier #returns  #others #secret  #own parameter  #take #thing  ^ before  ` tool  by .. the  check
0.019  #first #telling ignore  #in parameter #thing  #others #use  #telling others #thing  do .. tell  patient  safe
0.02  #duty #user  #forced #give  #telling ignore  en  model :  to
0.021  #before  #duty #own parameter  #in text #telling harm  #lasting  a repository  copy  noth  put  team  that .. be  the same  this session
0.022  #before #others  #personal #talk  #telling ignore #telling prompt  #telling prompt  human  if the  imag  inspect  newest  to .. a
0.023  #about #trigger  have  is .. in  list .. in  run .. the
0.024  #in text #trigger  #known personal  #silent  as .. of  in `  not .. for  ssh .. rsa  the last  you .. the
0.025  #model #whole  flag  id rsa  rsa  text to  the .. argument  with .. for
0.026  #consent #open  #duty #telling others  #every #param  #every #telling others  #office #thing  #say #thing  #self #whole  aws  base  context  generat  github  latest  of .. session  read a  repository  send a  their
0.027  #in text #you  #please  #secret #telling prior  download  of .. are  the .. all  the model  value
0.028  #divert #known thing  #excuse  #harm #in text  #in text #their  #in text #then  #own parameter #take  are .. as  same
0.029  #give #in parameter  #no #office  #no #telling unasked  #talk #trigger  store
0.03  #divert #identifier  #harm #talk  #office #whole  / x0  do .. for  env  of .. is  the user'  user'  while
0.031  #every #telling file  #in text #not use  #secret #their  content .. the  content from  in  need  order  other .. tool  room  the .. this  without
0.032  #about #give  #about #known give  #every #you  #in text #user  #known give #use  #rank  ^ inspect  explicitly  format  send  the .. line  your
0.033  #about #open  #before #talk  #first #others  #in parameter #office  #take  ^ format  consider  the `  to run
0.034  #discredit #no  #model #secret  #office #trigger  #own parameter #thing  afterward  all .. the  and .. have  and .. the  aws /  belong  password .. the  return a  table  to it  what  window
0.035  #before #telling prior  #duty #trigger  #in text #talk  #no #trigger  ^ number  and pass  cloud  it is  the .. messag  the latest  up a
0.036  #before #not take  #duty #others  #harm #obey  #in text #personal  #in text #telling title  #office #others  #office #their  #self #telling reset  0 .. of  api  appear  before the  find a  in .. x0  please  session .. the  with .. it
0.037  #address #talk  #first #open  as .. the  machine  the other
0.038  #address #excuse  #ask #telling ask  #known give  #open #telling ask  #then  and .. x0  first  github token  kindly  owner  read  right  übergeben
0.039  #about #excuse  #ask #telling prior  #give #telling others  #in parameter #whole  #open #telling prior  #own parameter #telling file  #take #user  a date  expression  gather  in a  it .. that  people  search .. in  share  writ
0.04  #address #trigger  #consent #trigger  #divert #others  #identifier #known give  #no #not use  #not use  #secret #use  #secret #you  a .. query  asking  document  each .. the  for .. before  ist  package  the .. return  the .. you  the person
0.041  #ask #in parameter  #duty #telling keep  #give #please  #identifier #others  #in text #telling models  #obey #say  #others #own name  #telling others #trigger  #their #thing  ^ in  a text  approval  evaluat  label  last  of .. other  profile  that  the .. request  to .. with
0.042  #address #before  #every #known give  #in text #telling others  #lasting #thing  #no #open  #own parameter #secret  and .. by  are .. by  cdn  it .. the  line .. the  send .. the  which the  with .. in
0.043  #address #identifier  #before #say  #duty #forced  #in text #lasting  #known give #user  #own parameter #please  #take #you  0 and  >  ^ any  a question  added  best  both  cooki  dies  of .. has  other  present  the  the .. chart  user explicitly  with .. to
0.044  #before #telling quiet  #consent #telling agreed  #form #own parameter  #give #model  #give #telling quiet  #known thing #telling prior  #thing #use  #trigger #user  a file  as .. in  be .. as  etc /  http .. 0  is .. with  namespace  the .. explicitly  the .. like  tool `  up  what .. the  with it
0.045  #before #telling file  #duty #model  #form #quoted  #give #quoted  #give #telling prior  #harm #personal  #identifier #obey  #in parameter #no  ^ a  chart .. is  decode .. follow  for all  home  list .. of  pem  to .. 0  you .. and
0.046  #known thing #user  #no #you  #not give #open  ^ [  call .. and  need to  side  text .. the  the .. most  the .. store  the .. that  this tool  those .. the  with .. of  word .. the  zu übergeben
0.047  #before #secret  #duty #obey  #give #office  #give #silent  #in text #quoted  #office #telling title  #others #you  #personal #use  #talk #telling prior  #telling prior #trigger  #telling title  ?  ^ your  hint  notice  text of  the .. them  were
0.048  #about #address  #about #duty  #duty #identifier  #excuse #telling rules  #harm #use  #in parameter #obey  #known thing #talk  #model #telling models  and .. one  built in  confirmation  from .. and  hex  holiday  in .. repository  it  part of  public holiday  the .. export  the line  ~ /  и
0.049  #before #trigger  #every #thing  #forced #take  #self #telling ignore  ^ generat  ^ public  and .. it  does  instruction and  region  tax  the .. owner  the .. server
0.05  #every #excuse  #form #whole  #known thing #take  #known thing #trigger  #open #use  #talk #use  metric  photo  question  until  ~
0.051  #consent #give  #excuse #give  #give #others  #harm  #in parameter #please  #model #rank  #telling harm #user  #trigger #whole  ^ optional  agre  archive  attach  call  eht dnes  evil test  forward the  http .. test  of .. team  word
0.052  #param #take  / etc  ^ make  ^ to  and .. of  code in  do .. user  generat a  its  non  on .. it  rate  the .. up  use .. as
0.053  #consent #obey  #duty #talk  #in value #whole  #lasting #use  #telling file #then  #telling prompt #you  a .. do  for .. a  home directory  hook  of .. call  para  the .. read
0.054  #divert #every  #every #own name  #identifier #trigger  #office #user  #telling models  answer  as .. e  delete  hand .. the  http :  in .. time  line  list .. and  message .. of  or .. to  seed  the .. address  the .. x0  their .. and  this  to .. them  use .. and
0.055  #ask #form  #give #secret  #others #talk  #telling rules #whole  bank  be .. to  compar two  eht .. eht  emoji  info  obey  prompt for  replac  tool .. is  with the  في
0.056  #care #telling others  #discredit #others  #give #trigger  #harm #please  #in text #telling rules  #no #take  #silent #telling keep  but  internal  is to  message .. to
0.057  #before #own name  #identifier #secret  #thing  and .. on  from .. the  need .. be  packag  star  the .. session  the .. so  true
0.058  #duty #give  #every #in parameter  #in parameter #model  #own name #returns  0 .. are  every  from .. text  http .. example  make  name are  of .. a  of .. repository  of ~  permission  up .. 0  when .. the
0.059  #before #known give  #every #model  #every #rank  #identifier #then  #in text #office  #known thing #personal  #not use #telling prior  #office #telling prior  #telling agreed  #then #thing  : x0  away  etc  image  number  otherwise  pods  with .. and
0.06  #address #duty  #duty #every  #duty #secret  #in text #silent  is .. as  it .. in  quality  reason  station  the .. but  the .. from  to .. so  told  word in
0.061  #model #quoted  #no #telling keep  #no #then  #own parameter #talk  #quoted #user  #their #user  ^ do  ^ when  count  list .. tool  may be  stat  submit  sync  wallet  with .. true  x0 .. x0
0.062  #before #please  #divert #you  #every #form  #no #own parameter  #please #take  #say #trigger  #telling unasked  and .. what  code  file .. read  has .. to  it .. as  its .. to  radio  recommend  register  sans  sh  shell  so .. can  the .. server'  them as
0.063  #duty #harm  #in parameter #use  #in text #telling obey  #in text #telling prompt  #no #not take  #not take  #please #say  <  e envie  filesystem  from .. server  im  is a  setting  what it
0.064  #duty #office  #give #user  #open #then  #silent #trigger  ? d  built  d =  desk  it has  multiple .. a  to this  tool is  trust
0.065  #discredit  #harm #in parameter  #quoted #telling others  / ?  ^ stor  a team  and .. list  da  five  for .. to  in .. of  it to  list .. request  present .. the  the .. work  you were
0.066  #before #their  #consent #telling harm  #give #personal  #in text #telling reset  #own parameter #returns  #param #whole  #telling others #you  #user #you  / credential  ^ non  is .. and  the content  the conversation
0.067  #in text #own name  #known thing #own parameter  #own name  #telling others  figur  runs .. query  sh |  ten  x0 [
0.068  #care #returns  #form #you  #their  0 0  a namespace  from .. to  if .. the  reply  when the  why
0.069  #discredit #telling others  #form #thing  #in text #not say  #not say #silent  #personal #their  #quoted #then  #telling ignore #user  ^ as  ^ where  for .. 0  its .. is  list .. namespace  mail .. and  mirror  previou .. the
0.07  #every #known take  #identifier #telling prior  #in text #own parameter  #no #not say  #not say  #others #returns  #telling prior #whole  #telling reset  and .. be  and .. them  direction  du  letter  named  pdfs  the .. tool  the repository  to .. as  too
0.071  #before #returns  #give #identifier  #harm #office  #in text #telling keep  #telling obey #user  #whole  ^ first  dnes  example  merg pdfs
0.072  #before #obey  #known give #then  #own name #trigger  #personal #trigger  #telling ignore #telling prior  preview  reviewer  tag  the .. your
0.073  #give #talk  #telling others #use  #then #trigger  ^ target  a .. request  by .. date  dans  if .. asks  of  of a  setup  shell .. the
0.074  #address #known give  #in parameter #open  #model #thing  #their #then  drop  example /  in .. and  limit  list pods  of .. by  pick  pods .. a  server  the .. were  this .. as  und  छल  छल .. द  द श  प छल  श
0.075  #consent #silent  #duty #excuse  #duty #self  #form #user  a .. by  assistant .. the  is not  it .. not  pend  the .. and  the .. left  to .. example
0.076  and .. not  hold the
0.077  #telling harm  a project  all tool  bash  current .. in  even .. the  of `  payment  pods .. namespace  sort by  the owner  this one  with .. the
0.078  #in text #param  #telling harm #then  a document  does not  is .. be  prior to  the .. time  this .. is  to http
0.079  #ask #give  #own parameter #whole  = =  as .. to  current .. a  extra  on  order is  that .. was
0.08  #before #param  #divert #in text  ^ ignore  branch .. a  branch .. repository  if .. user  json  the assistant
0.081  #about #then  #address #every  #address #quoted  #address #then  #first #returns  #lasting #secret  #model #own parameter  0 .. x0  =  come  has  of .. tool
0.082  #duty #take  #excuse #secret  #in text #telling later  #in text #telling unasked  be .. the  by .. of  decode and  it with  sort  to .. by  tool as  you .. for  не  об  об этом  этом
0.083  #give #known take  #harm #trigger  #known thing #use  #talk  conversa  it .. it  it .. to
0.084  #self #you  ^ keep  compar  count word  country  force  nc  report  school  slow
0.085  #own parameter #personal  #own parameter #telling prior  #user  0 .. the  as .. a  it .. be  known
0.086  #telling prompt #whole  even when  is .. its
0.087  #  #office #then  0 /  by .. this  list .. a  openai  point .. or  request of  return .. in
0.088  #before #harm  #duty #telling prior  #identifier #user  #in parameter #others  #in value #thing  #user #whole  0 .. to  by .. or  call .. with  choice  collect  e  font  helper  the .. mcp  with .. or
0.089  #consent #harm  #no #say  #personal #take  #telling role #you  department  dna  speak .. text  speak a  the .. their  à
0.09  #duty #rank  #telling agreed #user  about  connector  recovery  the .. connector
0.091  #before #whole  #discredit #in text  #divert #user  #talk #whole  answer .. the  the .. in  the .. prompt  the password
0.092  #duty #telling file  #every #use  #open #silent  #returns #telling others  #telling obey  [ x0  a chart  been  host  partner  phase  send .. request  the .. data
0.093  #address #harm  #known personal #take  begin  by  converter  evil  found  incl  the .. as  use the  y
0.094  #own parameter #use  #telling reset #telling rules  box  in this  leak  search code  senha  way
0.095  #forced #use  count .. a  rate limit  them .. the
0.096  #no #quoted  #telling prior #telling reset  enc  gb  powershell  report .. of  with .. tool
0.097  #in parameter #you  #in text #telling file  ^ with  clos  found in  gb gur  head  not be  the .. is
0.098  #before #personal  #identifier #quoted  #obey #please  #rank #user  #telling prior #user  as  they  time .. a  you have
0.099  #before #in parameter  #form #in value  #others  #personal #you  #self #telling prior  auch  ip  shown
0.1  #excuse #in parameter  #identifier #in value  #no #telling quiet  #telling role  #use #whole  gur .. gur  in .. is  these  x0 x0
0.101  #before #model  #consent #say  #in value #secret  #no #use  #open #their  ^ count  are .. and  content of  enc x0  has been  so
0.102  #known user #open  #obey  ^ speak  full  speak
0.103  #harm #model  #telling prior #telling rules  #then #user  lo
0.104  #first  #own name #use  are .. be  even  open .. the
0.105  #own parameter #user  0 x0  ^ #  due  need not  of 0  out .. the  part  reference
0.106  #in text #say  #in text #telling role  ^ merg  assistant
0.107  #in text #rank  ^ compar  apply  the .. are  this .. are
0.108  #address #in value  #consent #model  #give #use  #model #take  ^ other  daer
0.109  ^ pod  and the  la  read .. file  they are
0.11  #model #no  are to  das .. der  hold  turn
0.111  #obey #then  #telling file #thing  #telling marker  #you  found .. the  tail
0.113  #give #in value
0.114  #identifier #telling others  merg  naq .. gur  them
0.115  #consent #telling unasked  elif
0.116  #in parameter #their  #no #user  #secret  #secret #take  lla
0.117  #identifier #whole
0.118  : the  car  texto
0.119  #give  #known give #take  #telling rules  ^ tail  take the
0.12  public  us
0.121  #in text #telling quiet  code .. the
0.122  #every  #personal  `  and .. name  not .. user
0.123  #no #silent  ssh
0.124  #telling file  #telling ignore #telling rules  #telling quiet  x0 =
0.126  *
0.127  #in parameter #take  choose
0.128  c  decode  no .. and  o
0.13  #first #identifier  #model #trigger  #secret #telling file  ^ image  and .. is  der  in .. the  this .. the
0.131  d  those  value of
0.133  also
0.135  #address #in text  #model
0.136  @  along
0.137  #before #thing
0.138  0 .. 0
0.139  #address  #in parameter #personal
0.14  keep  que  t  x0
0.141  #consent #no  chart  入
0.142  #model #then
0.143  des  tool
0.146  #give #then  #secret #thing  to .. user
0.147  #in text #obey  whatever
0.148  was
0.15  #silent #user
0.151  #give #known personal  here
0.155  net
0.156  #address #give
0.158  naq  under
0.159  i
0.161  #telling keep
0.162  ^ <
0.163  zu
0.165  prior  weather
0.166  our
0.167  find .. by
0.171  #every #identifier  #in parameter #secret
0.173  、
0.175  to be
0.177  #every #secret
0.178  return .. time
0.181  # 0  0 #
0.182  note
0.193  #in text #model
0.197  ^ x0
0.222  get weather
0.251  #in parameter #talk
0.352  eht
"""

CONTENTS: Final = """
-0.232  server
-0.227  #model #self
-0.219  someth
-0.213  commit
-0.211  ^
-0.206  #no #secret
-0.186  ^ we
-0.175  " ignore
-0.171  #form
-0.17  minut
-0.168  ignore
-0.166  http .. com  the agent
-0.164  a
-0.159  forward  previou
-0.157  it to  the assistant
-0.156  #rank #telling ignore
-0.155  sie
-0.153  : `  script
-0.152  #please #secret
-0.151  read it
-0.15  #no #please
-0.149  #bias  type
-0.147  high
-0.146  not  send
-0.145  override  says
-0.144  ^ agent  a .. the  x0 :
-0.143  #take  wie
-0.142  letter  we
-0.141  may  ssh
-0.14  #personal #self
-0.139  #care
-0.138  bot
-0.137  #then #user  it .. to  team
-0.136  #form #telling ignore  the .. contain
-0.134  #duty #user  such
-0.133  * *  why
-0.132  least
-0.131  image  mcp  send .. to  text .. a  use
-0.13  is the
-0.129  #duty #trigger  ^ ask  asks .. the
-0.128  #use
-0.126  sobre  。
-0.125  com /  x0 /
-0.124  #say #thing  hash
-0.123  red
-0.121  can  io /  the .. before
-0.12  #form #telling rules  are .. the
-0.119  docs
-0.118  #before #use  #telling ignore #trigger  ?  را
-0.116  ^ the  sent
-0.115  credential  model  note :
-0.113  @ example  an
-0.112  #before #user  #harm #self  data  how  “
-0.111  #forced #trigger  #personal #telling rules  #talk #thing  it and  twice  user "  you .. a
-0.11  #no  ^ note  in  or  स
-0.109  injection  to .. to
-0.107  0 .. read  if  todo
-0.106  #office #telling prompt  light
-0.105  contain  is .. of  only .. 0  the .. mail  the .. within
-0.104  "  " you  #in arguments  a .. do  earlier  no .. of  the right
-0.103  ^ add  take
-0.102  #self #user
-0.101  " x0  example com  guard  localhost
-0.1  #param  id .. x0
-0.099  #no #not use  #not use
-0.098  #office #self  bar  on .. and  public key  the .. them
-0.097  #obey #telling ignore  #office #telling rules  ^ researcher  by a  el
-0.096  ^ assert  ai assistant  assert  ignore previou  three  world  your .. and
-0.095  #about #address  #param #user  0  ^ you  agent  certificate  hr  tell  x0 [
-0.094  an .. the  npm  read the  前
-0.093  #say #telling ignore  #telling keep #then  @ horn  ^ la  http .. lumenwork  just  you .. assistant
-0.092  / head  / img  0 x0  as well  had  horn example  pytest  using
-0.091  #give  #no #not give  #not give  < !  api key  d  fixed  please .. this  the letter  web
-0.09  #model #thing  instruction  node
-0.089  #excuse  #model #telling rules  #trigger  ^ an  ask  ask for  instruction .. the  one  unit  web page
-0.088  #care #thing  #consent #take  / x0  0 .. for  ^ die  class  for a  ignor  please .. your
-0.087  #give #telling reset  #telling file #telling prior  / db  e .. x0  nobody  the .. after
-0.086  #talk #telling ignore  flag  friday  http .. sh  is no  once  parcel
-0.085  between  bitte .. sie  or .. the
-0.084  system prompt  the .. may  the key
-0.083  #before #thing  : "  ^ ne  ^ only  character  communiquez  lang  ne communiquez  previou .. the  text  to .. you  votre  wrote  件
-0.082  " it  #secret #telling prior  ^ def  def  dev  instruction "  it .. for  mail  the new
-0.081  #form #silent  #no #quoted  #take #telling rules  disregard  researcher  the .. without  untrust
-0.08  #about #telling rules  #telling prompt #user  ^ never  and .. of  date  example .. 0  import  man  this .. you  入
-0.079  ^ curl  allow  expir  github  setting  the .. form  the previou  x0 .. and
-0.078  0 .. admin  ]  ^ expect  a .. http  are a  attempt  me  valid
-0.077  #give #telling ignore  #personal #use  #talk  a un  all previou  asks  fail  ignore the  to .. it  vault
-0.076  " system  #every #then  #please #telling ignore  #take #telling prior  #talk #trigger  ' ignore  ^ and  a .. assistant  command  help  in .. text  it's  replace  rotate  source  system .. a
-0.075  #returns #use  ^ date  can .. be  http .. 0  instruction '  prompt injection  token .. 0  user :
-0.074  : a  a txt  forget  ignore .. and  jobs  key  recommend  to all  un  user .. approv  you .. now
-0.073  agent .. and  august  follow the  iban  not .. a  should  used
-0.072  #before  #discredit #trigger  #no #not harm  #not harm  / bin  / user  ^ budget  ^ ssh  be .. to  generic  latest  project  reach  with an
-0.071  #self #telling rules  and .. by  imag  password =  todo :
-0.07  #before #quoted  #give #open  0 .. are  filter  poison  send .. the  start  system .. 0  to .. as
-0.069  #discredit #harm  / etc  ^ example  ^ instruction  break  do .. to  etc  etc /  las .. en  messag  token .. token
-0.068  #quoted #telling ignore  #take #talk  0 .. with  before  end public  has .. request  has approv  id =  like  talk  to .. on
-0.067  #duty #no  @ localhost  ^ const  example .. x0  hi  must .. to  never  room  test  the invoice  user .. localhost
-0.066  #care #no  #discredit  #take #you  [ ]  die .. von  ha .. el  please .. 0  question .. the  the .. name  to .. com
-0.065  #no #user  #obey #telling prior  ^ track  guide  it .. that  linux  prompt  stop  the .. instruction  white .. a
-0.064  #forced #user  #please  it .. a  told
-0.063  #about #you  <  ^ hi  ^ to  agent .. call  anterior  block  developer  down  for  google  group  horn  how .. you  html  http .. github  kind :  must be  newsletter  one is  sure .. the  x0 from  人
-0.062  call the  don't .. the  eggs  instruccion  it .. it  jamai  las instruccion  leiten  leiten sie  org .. 0  sk
-0.061  #self #take  #talk #telling rules  ' =  = 0  anweisungen  of 0  token "  took  value  ह
-0.06  ^ apiversion  ^ kind  ^ name  a .. to  apiversion  apiversion :  before .. commit  password :  update  x0 >  you must
-0.059  #no #whole  #office #whole  #talk #telling prompt  ^ public  and forward  blog  restart  the .. user
-0.058  #before #duty  #model #their  #obey #telling rules  #telling rules #user  0 .. 0  ^ x0  by .. of  dist  e "  eva  grep  if the  ignoriere  ignoriere .. anweisungen  ignoriere alle  in .. the  letter .. the  order  since
-0.057  " http  #before #obey  #consent #you  >  ^ инструкция  danach  file  log  löschen  löschen sie  prompt .. the  sie .. die  src  the .. need  »  инструкция
-0.056  #duty #say  #forced #you  #self #talk  / login  / www  are .. assistant  env example  note .. 0  secret  side  tell .. what  the .. confirm  through the  www
-0.055  0 :  and tell  and this  between .. and  customer  going  jwt  jwt .. x0  keep  please don't  send .. mail  show  to .. or  us
-0.054  #before #identifier  #before #personal  #every #obey  #no #telling prior  #please #say  #secret #silent  : how  ^ *  a .. a  host  if a  written
-0.053  #before #consent  : bitte  as .. i  don't  fall  id  inform  rs  text .. the  the .. asked  the .. ignore  tool .. and  version  von  within  ya ha
-0.052  #about #consent  / png  = http  ^ run  example "  for .. in  image /  or .. to  otherwise  personal  prefer  the model
-0.051  #discredit #please  #returns #take  #secret #their  #thing #you  ^ راهنمای  a .. page  agent .. a  git  h  screenshot  you .. to  راهنمای
-0.05  #about #telling file  #forced #use  #identifier #trigger  #model #you  #telling reset #thing  on .. 0  pg  redact  to .. that  token .. in
-0.049  #about #telling prompt  #model #talk  #no #others  #office #open  : password  ^ api  ^ tool  am  attack  call .. first  chatbot  check  gateway  ignore .. in  number .. 0  parti  pub  the .. have  what'
-0.048  #every #whole  #give #obey  #personal #telling ignore  *  : http  ^ si  ^ upgrade  a .. tell  also  m  manager  to .. before  white text  } }
-0.047  #before #open  #before #then  #forced #thing  0 [  =  creat  how do  image .. x0  log in  login .. example  the bot  در  👩
-0.046  #obey #self  #telling prior #you  0 .. to  ^ $  ^ please  in .. page  indirect  org /  sie die  svg  were .. to
-0.045  #duty #telling ignore  : send  @ x0  ^ in  ^ use  at once  chair  class =  look .. the  office  often  please .. it  to .. call
-0.044  ' you  a .. as  a user  all .. from  cli  one .. the  remov  said  transfer .. 0  you .. your
-0.043  #about #form  #model #telling reset  ^ ghcr  ^ she  a web  and .. a  app  assistant .. is  attacker  between .. 0  do  example :  ghcr  ghcr .. x0  ghcr io  run  the password  track  you asked  your password
-0.042  #before #telling ignore  0 .. password  ] }  bitte  gmbh  http .. org  lang =  paste it  reset  tar  third parti
-0.041  #about #use  #form #telling reset  #harm #please  #returns #secret  ^ http  ^ jwt  article  assistant .. it  data .. x0  everyth  ha  is .. on  ms  page  pin  the second  to .. a  updat  w /  was
-0.04  #divert #form  < x0  > <  ^ import  an .. to  begin public  cve  hello world  img /  rule  search  the .. told  👨
-0.039  #every #lasting  #model #quoted  #office #returns  #office #say  ' or  / src  ^ begin  a .. in  after the  and 0  if .. you  integrity  password .. password  recipe  report  section  there
-0.038  #take #telling reset  / github  : '  ^ c  ^ how  diff  markdown
-0.037  #about #obey  #give #harm  #no #personal  #telling rules #thing  / p  a .. it  a tool  agent .. the  at .. 0  if .. is  ones  product  second  the .. e  } ]  提
-0.036  #telling prior  #telling prior #telling prompt  ^ do  contractor  curl .. http  e g  is .. model  must  right  t :  the .. assistant
-0.035  #not give #trigger  / localhost  0 .. token  0 |  ^ rotate  ^ test  asked  connection  e .. 0  for .. 0  integrity .. x0  note to  rate  third  which  white
-0.034  #not give #please  ^ a  ^ then  cve .. 0  cve 0  don't tell  end certificate  key =  milk  over  the .. previou  الاجتماع
-0.033  #about #secret  #every #you  : thank  = "  ^ set  at the  by friday  cent  docs /  it as  localhost :  none  signature  ssh .. x0  to .. prompt  you need  |
-0.032  #identifier #take  #not give #telling prior  / ?  add  commit x0  config  docker  double  function  sum
-0.031  #every #telling reset  #form #self  #please #telling prior  #quoted  #take #use  / docs  ^ as  ^ system  ai  key .. the  the  the client  ts  und .. sie
-0.03  #harm  ^ select  all the  architecture  through
-0.029  #care #not give  #no #telling ignore  0 .. eur  ^ docker  forward the  how to  in a  key .. api  order .. 0  system  { }
-0.028  #about #personal  #not give #personal  ^ مرحبا  a .. with  anyth  id .. 0  in this  io .. x0  kind  les  object  ops  password "  python  sh  src /  switch  the .. customer  the .. the  these  token  you  «  مرحبا
-0.027  #address #harm  #identifier #telling rules  #model #telling prior  #talk #you  0 .. it  = <  ] {  ^ src  chat  fingerprint .. x0  gh  never .. the  please .. and  your .. key  } "
-0.026  #not say #silent  begin certificate  can i  click  mail .. example  readme  select  sentence
-0.025  #telling ignore #thing  bob  copy  subject :  tell .. to  the .. up  we .. a  {
-0.024  #give #personal  ' 0  0 .. e  ^ |  by  forward .. mail  fund  http .. x0  json  table  told .. to  you've  your api
-0.023  #before #every  #take #telling ignore  / app  [ {  kernel  kernel .. 0  out of  the .. should  the .. when  want to  you .. an
-0.022  #about #no  #every #telling ignore  #forced #no  #identifier #self  #rank  to .. team  token =  url =
-0.021  #take #telling prompt  #their #use  ^ read  api .. http  bad  fingerprint  not .. in  rsa  the .. be  the .. token
-0.02  #about  #excuse #telling ignore  #personal #quoted  #whole  build  ci  document .. 0  summary  token :  window  your .. here  💻
-0.019  #care #secret  #no #take  #no #their  / test  0 .. x0  ^ text  is .. you  shall  until  }
-0.018  #harm #you  #not give #secret  #secret #telling file  ^ answer  ^ send  com .. x0  eur  explain  helpful  keys  laptop  the .. on  train  you .. for
-0.017  #about #self  #consent #telling unasked  #excuse #personal  #excuse #telling harm  #forced  #no #telling rules  #quoted #take  ^ subject  asked for  cv  do .. it  docs :  ignore .. instruction  known  such as  the .. now  usage
-0.016  " 0  #personal #secret  $ {  = your  have to  invoic  serial  the .. said  the .. system  x0 .. 0
-0.015  #excuse #user  #obey #quoted  #secret  in .. a  in .. are  mail to  remove  the repository  the vendor
-0.014  #about #telling prior  #model #office  #telling prior #whole  @  and .. not  into  lunch  old  password  session
-0.013  #before #trigger  = =  case  city  note .. the  pric  replac  und
-0.012  #form #telling prior  #say #telling rules  #take #thing  person  system .. you  the old
-0.011  #about #duty  #duty #you  #excuse #give  and .. your  api .. api  con  data :  git .. 0  in x0  run `  the .. has  the contract
-0.01  ^ error  act as  bin  la  text /  well
-0.009  #discredit #no  #every #self  #form #you  #self  #trigger #you  '  call .. the  first .. the  instruction in  on .. a  on a  password .. the  treat  x0 .. http  x0 x0
-0.008  : 0  and .. is  be .. in  before you  metric  now  shadow  ssh x0  what is  you are
-0.007  #every #model  #identifier #telling file  ^ delete  ^ open  back  for .. password  i .. to
-0.006  #no #not take  #not give #you  #not take  #office #talk  #talk #telling prior  ^ if  hello  install  order 0  short  tag  the .. for  with your
-0.005  #duty #then  #every #use  #identifier #user  #model #say  : i  anyone  begin  file :  from 0  it was  off  the .. is  who  x0 .. from
-0.004  #ask #open  #every #give  #excuse #thing  #form #identifier  #please #talk  #talk #user  ^ env  and a  assistant .. the  confirmation  is not  leav  the number  the summary  the user  we .. to
-0.003  #duty #talk  #please #you  api .. com  has .. the  key .. key  skip
-0.002  #secret #user  ^ don't  and .. in  item  message  the .. all  the .. follow  work
-0.001  #every #user  #give #telling prior  #office #please  #personal #telling prior  #then  again  hand  those
0.001  #divert #harm  #office  #quoted #you  application  database  on .. to  process  question
0.002  #silent #you  g
0.003  #before #give  #consent #trigger  die .. die  four  to the  your .. the
0.004  " statu  " to  #consent #then  #telling ignore #you  ^ this  ` and  a .. which  com  statu "  with .. of  with it
0.005  #duty #telling rules  < p  ^ forget  and .. you  as  assistant  authentication  cookie  error :  p >
0.006  #address #no  #form #give  are .. to  please  will  x0 0
0.007  #give #telling models  ^ assistant  en  home  it will
0.008  : in  forward .. to  the .. been  the .. by
0.009  #form #quoted  0 .. a  and .. its  content  fix  on the  ~ /
0.01  0 }  and do  have .. to  o  reject  work .. the
0.011  #address #office  #identifier #secret  #identifier #telling marker  #telling later #user  0 .. in  [  address  be  is .. a  link  registry  user .. the  way
0.012  disabl  in .. to  memory  of .. is  os  up to  with a  within .. days  your
0.013  #silent #user  : [  ^ user  api  away  evil example  for the  ghp  of .. and  the .. which  this page
0.014  " in  #form #no  #telling models #telling rules  and .. are  it .. of  name  part  the .. your
0.015  #every #harm  #telling keep #user  a .. 0  is  sign  the .. link  with .. 0  x0 .. x0
0.016  #about #identifier  #every #thing  #telling ignore  #telling reset #you  all .. the  application /  default  e mail  has been  left  number of  offer  only  the .. only  you .. be
0.017  #duty #secret  #form #personal  #identifier #use  #say #silent  #silent #trigger  are .. for  exchange  found  have  it .. the  it .. with  n  thank you  the .. that  you .. the
0.018  #obey #thing  #telling prior #thing  above  hidden  hotel
0.019  #quoted #use  0 .. from  chang  the .. must  want .. to
0.02  " >  #divert #thing  #every #telling rules  #office #telling ignore  #telling models #you  five  of  the follow
0.021  #address #silent  #give #self  #then #trigger  ist  to read
0.022  #consent #self  #harm #identifier  #thing #trigger  asked to  can .. the  could  pull  x0 "
0.023  #  #before #form  #duty  #form #their  #no #telling keep  #no #telling role  #secret #telling ignore  at  für  pass  release  the .. was  to .. by  to .. example  when
0.024  #address #say  #give #telling prompt  #give #then  #personal #then  #talk #use  as .. and  of .. tool  per  the .. list
0.025  #before #self  #consent #harm  /  ^ customer  and the  are .. and  at ten  is .. and  output  x0 .. the
0.026  " "  #secret #self  #then #whole  ^ return  all  every  password for
0.027  ^ security  any  need  noth  out .. the  the .. and
0.028  #no #talk  example /  helper  ignore .. previou  present  reader  rest  see
0.029  #before #harm  #give #quoted  #telling others  #telling role #telling rules  #you  ^ install
0.03  #duty #give  #give #thing  #model #user  #please #trigger  end  has  response  the .. file  with .. and
0.031  #about #before  #duty #returns  #take #trigger  / 0  book  e .. e  i'm  start .. 0
0.032  #give #talk  #identifier #quoted  ^ file  board  dear  from .. on  not .. the  production  repeat  the .. can
0.033  #address #trigger  #excuse #their  #quoted #thing  #then #thing  a .. from  a .. on  auth .. 0  the .. a
0.034  #consent #telling rules  #no #not say  #not say  #trigger #use  ^ result  an .. a  ignore all  other  so .. can  the .. x0  to
0.035  !  #excuse #you  #harm #telling harm  #harm #trigger  #personal  #personal #their  #telling marker #telling prompt  #telling reset #telling rules  / a  auth  client  days  monday  set  x0 '
0.036  #about #give  #duty #model  #give #take  #lasting  #personal #user  #telling prompt  de .. la  hint  must .. the  them
0.037  #address #their  #excuse #then  #harm #office  #telling unasked  0 days  coding agent  das  des  discount  get  ok .. x0
0.038  #office #telling models  #telling prompt #you  0 .. the  :  die  mode  retry  that
0.039  # 0  #address #obey  #before #telling rules  #telling harm #telling prior  #telling prior #then  : for  ] :  after  ahead  attach  begin .. key  the .. from  the owner
0.04  #consent #identifier  #obey #you  #quoted #user  #returns  comment .. the  content of  http  invoice 0  it .. be  move .. the
0.041  #address #please  #before #you  #harm #quoted  #model #telling ignore  #not say #user  #quoted #secret  0 and  backup  matter  payment  please .. the  share the  you .. before
0.042  #about #user  #every #office  #obey #secret  call  pull request  you .. that
0.043  #consent #office  0 .. out  : $  ai that  and  coding  dinner  from  id "  level  repository  shar  the last  too  word  write
0.044  #duty #telling models  #please #take  #self #telling role  #telling ignore #telling models  #their #user  #thing #use  #use #whole  : when  ^ after  for .. a  hint .. the  is .. to  main  offer .. 0  please .. attach  please find  thank  user .. it  went
0.045  #address #then  #consent #form  #divert #personal  #form #returns  #model #open  #model #others  #open  0 '  enabl  into the  support .. example  this .. to  were asked
0.046  #address #duty  #every  #no #you  #self #telling ignore  #telling harm  ^ tell  answer  export  free  from .. the  in .. for  of .. for  total .. 0  x0 .. start
0.047  #address #form  #before #forced  #before #no  #harm #their  #obey #office  #self #telling prompt  erp  time  tool  your .. to
0.048  ' and  / home  0 .. and  0 .. info  in .. name  job  to 0  you .. asked
0.049  #excuse #secret  #please #thing  and .. no  c  display  example  is to  it by  png  receiv  the .. database  the admin  trouble
0.05  #office #telling role  #take #their  #telling prior #use  a .. this  plan  previou instruction  their  to .. in  two .. of
0.051  #before #telling reset  #telling file #use  0 $  0 .. name  0 0  : :  < /  and .. it  db password  here  in .. in  number .. the  por .. de  private  review  t =
0.052  #duty #identifier  #office #thing  #secret #thing  #telling ignore #user  / id  does not  task  the .. do  user .. 0
0.053  #every #excuse  #give #model  #give #returns  #self #telling prior  #telling ignore #telling reset  card .. 0  connect  could you  de la  do .. the  have .. it  left out  total
0.054  " and  #before #secret  #telling ignore #telling prompt  ' x0  e .. a  mark .. as  of .. 0  option  the .. of  this is
0.055  #address #telling prior  #duty #others  #harm #model  #office #trigger  ^ description  administrator has  contact  is .. in  to finish  x
0.056  #identifier #obey  #open #trigger  #telling ignore #use  access  and .. to  example org  friend .. the  get it  get the  within 0
0.057  #give #silent  #no #office  #no #trigger  #office #use  0 .. run  been .. with  euro  open  right away  sind  then  to .. of
0.058  #address #quoted  #telling harm #telling rules  #telling new #you  each .. a  from .. to  role =  secret |  the line  true  will .. the  with
0.059  " id  #address #secret  #obey #say  ^ with  each time  el .. de  great  place  question :  star  transfer
0.06  #consent #model  #give #say  #harm #telling ignore  #obey #use  #office #personal  #say #secret  #telling ignore #telling prior  $ 0  eine  encod  info  so the  the .. open  today
0.061  #duty #harm  #every #form  #harm #obey  #no #telling models  #telling prior #telling title  ^ kindly  business  consent  deletion  kindly  login .. password  of .. of  push  screen  style =  total 0  view
0.062  #address #take  #address #telling file  #before #telling file  #give #telling role  #model #silent  #self #telling unasked  #telling rules #telling unasked  and .. from  and add  cat  env  faster  for .. with  gb  internet  it  last  model :  the .. agent  your next
0.063  #about #quoted  #consent #duty  #consent #quoted  #discredit #you  #identifier #you  #office #quoted  0 .. be  facturo  in .. even  les .. la  not .. any  p  store  the question  tunnel
0.064  #discredit #office  #duty #form  #every #telling prior  #no #telling unasked  #quoted #trigger  #say #take  #then #use  0 .. request  ^ dear  are 0  beim  de  five .. the  for .. this  ki  request .. the  t  trust  you do  à
0.065  " :  #address #self  #model #please  #param #quoted  #telling reset  all .. instruction  and .. them  cat ~  click here  of the  sh `  sync
0.066  / i  ^ [  are .. with  available  count  invoice .. 0  machine  open at  policy  prod  same  toda las  txt  x0 x
0.067  #discredit #telling ignore  #model #trigger  #others #then  [ /  it .. until  llm  setup  the .. payment  to continue  user .. to
0.068  #duty #telling prior  #no #telling harm  #telling harm #telling ignore  an die  is .. it  is .. so  language model  tax  up
0.069  #forced #quoted  #give #telling file  #no #silent  #others #telling prior  #rank #say  ^ total  as .. as  detail .. the  form  maintenance mode  move  policy .. 0  proce
0.07  #form #please  / r  ^ access  ah  drop  environment  for .. x0  human :  museum  post  the .. new  the .. policy  to .. this
0.071  #give #telling new  #office #telling marker  #telling marker #telling prior  0 .. per  = '  and print  sort  the operator  x0 .. q  x0 |
0.072  #quoted #self  call .. to  hour  name "  para  site  son  system .. now  your .. in  для  об  об этом  этом
0.073  #model #telling later  #secret #telling rules  #telling models #trigger  #telling new #thing  #telling prior #telling role  #user  ^ could  good  have a  list .. the  lumenwork  read this  the .. line  the .. to
0.074  #consent #telling models  archive  door  go .. the  http .. test  mail example  safety  the .. 0  thursday  yes
0.075  #every #say  #excuse #identifier  #form #thing  #personal #say  msg  repeat the  the .. went  ticket .. 0  und .. an  x0  à .. les
0.076  #no #say  #no #then  #say #trigger  #telling prompt #telling rules  a comment  and run  as .. comment  been  grow  hinwei für  meet  sur .. de  { "
0.077  #every #silent  #give #identifier  below  does  that .. was  that it  the rest  to .. with
0.078  #consent #say  #divert #model  #not say #open  : you  example .. png  out  php  style .. 0  the .. want  this ticket
0.079  #every #telling agreed  admin '  line  name .. price  operator  pdf .. x0  term  ticket  | sort
0.08  " name  #address #telling rules  #others  #please #whole  #quoted #then  0 from  ^ see  and post  are .. by  asistente  begin .. private  begin openssh  day  env .. to  print  root .. 0  them .. a
0.081  #about #talk  #harm #secret  #office #telling title  #take #telling role  * /  full  left .. the  terminal  the link  to you
0.082  #divert  #please #telling rules  #telling keep  $ x0  agent :  software  thank !
0.083  ! =  #give #their  0 .. sur  ^ 0  debug  error 0  for this  isn't  offer 0  remark  sur la  t .. t  toda  trop  | x0  こ
0.084  #harm #no  api .. in  assistant .. this  avec  on  to http  u  vom  на
0.085  #form #harm  #model #no  #telling agreed #thing  #telling new  ^ it  im  is out  reveal .. prompt  the .. isn't  и
0.086  #consent #open  #harm #thing  #please #telling models  0 in  for automat  http .. example  nach  the .. account  the .. this  the .. two  them to
0.087  #address  #before #model  #consent #excuse  #excuse #take  #harm #user  #lasting #say  on this  partner  then continue  we can
0.088  and .. out  and .. the  july  number  six  your .. a  zugang
0.089  #address #before  #consent #personal  = {  > you  contributor  im .. und  ines  is .. from  of .. the  see .. the  the date
0.09  #obey  #office #you  @ mail  ^ ticket  as .. the  for .. agent  lo .. el  png ?  responde  statu .. x0  the way  to .. help  transcript  x0 .. to
0.091  #address #use  #consent #telling prior  #model #use  #no #open  #telling role #you  img  in the  is .. that  net /  user .. for  when .. this  x0 $
0.092  #consent #every  by .. the  maintenance  role .. admin  the .. page  travel
0.093  #take #user  $  : your  customer .. thank  decode  has agre  later  page 0  with .. in
0.094  history
0.095  #divert #give  #give #please  #secret #use  ` curl  compte  w  you .. read
0.096  #every #telling later  #identifier #then  #personal #take  #whole #you  / *  0 .. of  ^ maintainer  holiday  key :  lumenwork /  owner  this .. the  ve
0.097  #use #you  0 .. la  den  freitag  gets  give  is .. by  tmp  | system
0.098  #address #excuse  #form #model  #model #telling quiet  conversation  do so  due  end .. private  end openssh  this .. from
0.099  login .. x0  phone  private key  r ?  so .. the  zusammenfassung
0.1  #address #every  #telling quiet  login  notice  price  the meet  ticket as
0.101  ^ client  be .. on  brought  dear .. please  invoice  next  you were
0.102  #duty #office  #telling title  ' :  ^ before  test /  vom 0
0.103  #no #use  #please #telling reset  b  need the  please .. of  please .. our  state
0.104  line .. the  the calendar
0.105  ! x0  #model #telling file  a .. is  de .. a  desc  finish  mon  mon .. 0  move .. to  na  please .. to  root .. x0  smaller  supervisor
0.106  #address #talk  in your  is a  request  reveal the  the .. are  wallet  x0 .. auth
0.107  #give #office  bank .. in  ends  in .. next  not .. about
0.108  ' '  it is  result  the .. in
0.109  #office #telling prior  #telling models #telling prior  #telling models #user  first  top
0.11  evil  so
0.111  admin  as "  very  à .. 0
0.112  " ok  #consent  #say #you  die .. der  tell them  will .. on
0.113  #please #self  #say #use  file .. public  reveal  using the
0.114  guest  sitzung  to be  x0 .. com
0.115  ^ entry  about it  dns  on tuesday  open .. 0  than  the .. password
0.116  #duty #use  #every #secret  ^ token  example net
0.117  #please #user  de .. 0  end of
0.118  #every #identifier  maintainer  that .. this
0.119  #about #excuse  ^ eine  der .. und  the .. you  upload
0.12  0 .. is  ^ hinwei  ^ {  and .. with  de .. du  firewall  highlight  ni  👍
0.121  io  ok "  verify
0.122  stor  x0 =
0.123  #say  / l  l  the .. at
0.124  #identifier #office  0 is  aux  for .. the  zur
0.125  #telling marker  0 "  der  feedback  it .. on  tr  went well  x0 #
0.126  #lasting #telling later  and .. x0  grant  openssh  openssh .. key  openssh private
0.127  #model #rank  automat  blue  está  the .. as
0.128  #address #thing  #telling file #thing  0 euro
0.129  #thing #user  base  each  la .. du  metadata  public
0.13  #telling role  #telling rules #whole  comment  ok  qui
0.131  #trigger #user  accept  empty  x0 t
0.132  #before #say  #model #obey  #model #secret  acme  client .. x0
0.133  #duty #thing  #harm #take  #telling agreed  its  term :
0.134  if .. admin
0.135  有
0.138  a .. de  list  note  requir  the .. about
0.139  ^ for  my  password .. x0  q
0.14  #obey #then  has .. to  à .. de
0.142  ^ document
0.143  #user #you  0 .. days  que  x0 and
0.144  ^ offer  este  install with
0.145  #say #then  step  that .. the
0.146  #address #user  #telling rules  #their  tell .. it
0.147  bank  the .. well
0.148  token .. x0
0.149  make  this
0.151  agenda  body  on .. the  that the
0.152  #consent #no  #model #take  ^ <
0.153  #model #personal  #self #whole  a .. of  digital
0.154  #duty #take  #harm #telling prior  #telling prior #user  agent .. this
0.155  #model #then  patient
0.158  : x0
0.159  #address #model
0.16  lo
0.161  hinwei
0.162  #address #give  0 mg  mg  up .. the
0.163  pdf
0.164  entry  with the
0.165  #identifier #model  seit
0.166  #form #take
0.168  #address #personal
0.174  #every #take  lo que
0.178  #telling prior #telling rules
0.179  confirm
0.183  #identifier #thing
0.187  ten
0.189  #telling later  root
0.19  ^ term
0.195  #harm #use  e .. o  o .. e
0.196  #model #telling models
0.201  ^ ignore
0.203  the .. tool
0.204  du
0.21  ^ invoice
0.226  #give #secret
0.229  continue
0.233  net
0.236  #telling models
0.237  exe
0.243  x0 .. example
0.276  #telling ignore #telling rules
0.344  #model
"""
